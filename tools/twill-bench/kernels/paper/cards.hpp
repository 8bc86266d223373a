// cards: what the model on paper knows of each GPU. Constant data; any thread may read it.
//
// Every figure has its source in cards.cpp. Where none was published, the figure says there how it
// is derived, or that it is an assumption.
#pragma once

#include <span>
#include <string_view>

namespace twill::bench::paper {

struct card {
  const char* name; ///< "A100-40G"
  int multiprocessors;
  double clock_hz;         ///< boost
  double dram_bytes_per_s; ///< of the data sheet; shares of DRAM bandwidth refer to it
  double read_share;       ///< of that, what a kernel that only reads reaches
  double l2_bytes_per_s;   ///< read by all multiprocessors from the L2 cache
  double dram_latency_s;   ///< of one load when the memory is idle
  double l2_latency_s;
  double tensor_fma_per_s; ///< dense 16-bit multiply-adds into f32, of the data sheet
  double mma_share;        ///< of that, what mma.sync can reach
  int shared_bytes;        ///< for the blocks of a multiprocessor
  int threads;             ///< of a multiprocessor
  double launch_s;         ///< from one tiny kernel to the next in a CUDA graph

  double read_bytes_per_s() const { return dram_bytes_per_s * read_share; }
};

/// The same on every card.
inline constexpr int registers_of_multiprocessor = 65536; // CUDA C++ Programming Guide, 8.0 to 9.0
inline constexpr int schedulers = 4;                // each issues one warp instruction a cycle
inline constexpr int shared_bytes_of_system = 1024; // of each block; same guide
/// Bytes that a multiprocessor takes from L2 in a cycle. Assumption: the width of the port since
/// Volta, which the measured L2 rates stay below.
inline constexpr double port_bytes_per_cycle = 64;
/// Latency under full load over that when idle. Derived: on the A100-40G, gpu-stream has 110,592
/// loads of 8 bytes in flight at 1,490 GB/s, thus 594 ns a load, where gpu-latency has 407 ns.
inline constexpr double loaded_latency = 1.46;
/// Cycles between two instructions of one warp. Assumption: dependent arithmetic takes 4.
inline constexpr double cycles_between_issues = 4;
/// The share of issue slots that is used however many warps there are. Assumption.
inline constexpr double most_issue_share = 0.8;
/// What the host spends on a launch outside of a graph. Assumption, between 3 and 5 us.
inline constexpr double host_launch_s = 4e-6;

std::span<const card> cards();
/// The card of that name, which must be in the table.
const card& card_of(std::string_view name);

} // namespace twill::bench::paper
