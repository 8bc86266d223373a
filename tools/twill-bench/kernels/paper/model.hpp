// model: the time of one CUDA kernel from counts, without a GPU. Pure functions.
//
// The kernel's blocks run in rounds: as many at a time as fit on all multiprocessors, then the
// rest, spread evenly. A round takes as long as the slowest of what it needs, since a kernel that
// prefetches overlaps them all:
//   DRAM     bytes of the round over the rate of a kernel that only reads; the memory is shared, so
//            a multiprocessor with fewer blocks leaves its part to the others
//   L2       bytes through the L2 cache over its rate, for all; and for the busiest multiprocessor
//            alone over the width of its port
//   issue    warp instructions of the busiest multiprocessor over 4 a cycle, times the share of the
//            slots that its warps can fill: a warp issues every 4 cycles at most, and 80 % are the
//            end
//   tensor   multiply-adds of the busiest multiprocessor over its part of the card's rate
//   latency  Little's law for one block: the bytes that it reads over its bytes in flight, times
//   the
//            latency of a loaded memory; nothing makes a block faster
// Before the first round comes the launch, and the first load's latency as often as loads depend on
// each other before data flow; after the last, what the kernel adds up at its end. With one block
// at a time on a multiprocessor nothing else runs meanwhile, so these two come once a round.
//
// What it leaves out: hits in L2 from one launch to the next, clocks that fall under load, bank
// conflicts, and that two needs of about the same size never overlap completely. So up to 32 rows
// its times are too short: Marlin's published figures (marlin.hpp) say by how much.
#pragma once

#include <cstdint>

#include "tools/twill-bench/kernels/paper/cards.hpp"

namespace twill::bench::paper {

/// What a launch reads, issues and occupies, all blocks together unless said otherwise.
struct kernel_counts {
  double dram_bytes = 0; ///< read or written at least
  double l2_bytes = 0;   ///< between multiprocessors and L2, with those from DRAM
  double warp_instructions = 0;
  double mmas = 0;            ///< mma.m16n8k16 of a warp
  double tensor_share = 1;    ///< of what mma.sync can reach on a card, what this kernel reaches
  double busiest = 1;         ///< work of a multiprocessor's busiest warps over the mean
  std::int64_t blocks = 1;    ///< at least 1
  int warps_of_block = 1;     ///< at least 1
  int blocks_at_once = 1;     ///< on a multiprocessor, at least 1
  double bytes_in_flight = 0; ///< of a block; 0: Little's law is left out
  int first_loads = 1;        ///< that depend on each other before data flow
  double end_s = 0;           ///< sums and stores after the last product
};

enum class bound : std::uint8_t { dram, l2, issue, tensor, latency, fixed };
inline constexpr int n_bounds = 6;
const char* name_of(bound b); ///< "DRAM", ..., "launch"

struct predicted {
  double seconds = 0;
  bound by = bound::fixed; ///< what takes longest; `fixed`: launch, first loads and the end
  double dram_share = 0;   ///< of the data sheet's bandwidth
  double waves = 0;        ///< blocks over those that run at once
  /// Share of the seconds that an even spread over the card, and enough bytes under way, would
  /// save.
  double wave_loss = 0;
};

predicted predict(const card& on, const kernel_counts& counts);

/// The blocks that a multiprocessor holds at once, at least 1: registers are granted to a warp by
/// 256, and shared memory with the system's part of each block.
int blocks_at_once(const card& on, int threads, int registers_of_thread, int shared_bytes);

/// The share of issue slots that so many warps of a multiprocessor can fill.
double issue_share(double warps);

} // namespace twill::bench::paper
