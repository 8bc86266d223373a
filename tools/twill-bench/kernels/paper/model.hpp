// model: the "model on paper", which predicts the time of one CUDA kernel from counts of its work,
// without a GPU. The functions are pure.
//
// The thread blocks of a kernel run in rounds. A full round has as many blocks as fit on all
// multiprocessors at once; the last round has the rest, spread evenly. A kernel that prefetches
// overlaps everything it needs, so a round takes as long as the slowest of these needs:
// - DRAM: the bytes of the round, divided by the rate of a kernel that only reads. The memory is
//   shared, so bandwidth that a multiprocessor with fewer blocks does not use is free for the
//   others.
// - L2: the larger of two times: the bytes of the whole round divided by the rate of the L2 cache,
//   and the bytes of the busiest multiprocessor divided by the rate of its port.
// - issue: the warp instructions of the busiest multiprocessor, divided by 4 per cycle times the
//   share of the issue slots that its warps can fill. A warp issues at most every 4 cycles, and at
//   most 80 % of the slots can be used.
// - tensor: the multiply-adds of the busiest multiprocessor, divided by one multiprocessor's part
//   of the card's rate.
// - latency: Little's law for one block: the bytes that the block reads, divided by its bytes in
//   flight, times the latency of a loaded memory. No free bandwidth shortens this time.
//
// Before the first round come the launch and the first loads: one memory latency for each of the
// first loads that depend on each other. After the last round comes the time in which the kernel
// adds up its results. Where a multiprocessor holds only one block at a time, nothing else runs
// during the first loads and the end, so these two times are added once per round.
//
// The model leaves out hits in L2 on data of an earlier launch, clocks that fall under load, bank
// conflicts, and that two needs of about the same size never overlap completely. Therefore its
// times for up to 32 rows are too short; Marlin's published figures (marlin.hpp) show by how much.
#pragma once

#include <cstdint>

#include "tools/twill-bench/kernels/paper/cards.hpp"

namespace twill::bench::paper {

/// What a launch reads, issues and occupies. Figures are sums over all blocks unless the comment
/// says otherwise.
struct kernel_counts {
  double dram_bytes = 0; ///< least number of bytes read or written
  /// Bytes between the multiprocessors and L2, including those that come from DRAM.
  double l2_bytes = 0;
  double warp_instructions = 0;
  double mmas = 0;            ///< number of mma.m16n8k16 instructions of warps
  double tensor_share = 1;    ///< the part of a card's mma.sync rate that this kernel reaches
  double busiest = 1;         ///< work of the busiest warps of a multiprocessor divided by the mean
  std::int64_t blocks = 1;    ///< at least 1
  int warps_of_block = 1;     ///< at least 1
  int blocks_at_once = 1;     ///< blocks that a multiprocessor holds at once, at least 1
  double bytes_in_flight = 0; ///< per block; 0: Little's law is left out
  int first_loads = 1;        ///< loads that depend on each other before data flow
  double end_s = 0;           ///< time for sums and stores after the last product
};

enum class bound : std::uint8_t { dram, l2, issue, tensor, latency, fixed };
inline constexpr int n_bounds = 6;
const char* name_of(bound b); ///< "DRAM", ..., "launch"

struct predicted {
  double seconds = 0;
  /// The need that takes longest; `fixed` is the launch, the first loads and the end.
  bound by = bound::fixed;
  double dram_share = 0; ///< share of the data sheet's bandwidth
  double waves = 0;      ///< number of blocks divided by the number that run at once
  /// The share of the predicted time that would be saved if the thread blocks were spread evenly
  /// over all multiprocessors, with enough bytes in flight.
  double wave_loss = 0;
};

predicted predict(const card& on, const kernel_counts& counts);

/// The number of blocks that a multiprocessor holds at once, at least 1. A warp's registers are
/// granted in units of 256, and each block needs the system's part of shared memory besides its
/// own.
int blocks_at_once(const card& on, int threads, int registers_of_thread, int shared_bytes);

/// The share of issue slots that this many warps of a multiprocessor can fill.
double issue_share(double warps);

} // namespace twill::bench::paper
