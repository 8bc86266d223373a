// cards: the properties of each GPU that the model on paper (model.hpp) uses. The data is constant;
// any thread may read it.
//
// cards.cpp gives the source of every figure. Where no figure was published, cards.cpp says how
// it was derived, or that it is an assumption.
#pragma once

#include <span>
#include <string_view>

namespace twill::bench::paper {

struct card {
  const char* name; ///< "A100-40G"
  int multiprocessors;
  double clock_hz;         ///< boost clock
  double dram_bytes_per_s; ///< from the data sheet; shares of DRAM bandwidth refer to it
  double read_share;       ///< the share of dram_bytes_per_s that a kernel that only reads reaches
  double l2_bytes_per_s;   ///< rate at which all multiprocessors together read from the L2 cache
  double dram_latency_s;   ///< of one load when the memory is idle
  double l2_latency_s;
  double tensor_fma_per_s; ///< dense 16-bit multiply-adds into f32, from the data sheet
  double mma_share;        ///< the share of tensor_fma_per_s that mma.sync can reach
  int shared_bytes;        ///< shared memory of a multiprocessor
  int threads;             ///< most threads on a multiprocessor
  double launch_s;         ///< from one tiny kernel to the next in a CUDA graph

  double read_bytes_per_s() const { return dram_bytes_per_s * read_share; }
};

// The constants below have the same value on every card.

/// 32-bit registers of a multiprocessor (CUDA C++ Programming Guide, compute capability 8.0 to
/// 9.0).
inline constexpr int registers_of_multiprocessor = 65536;
/// Warp schedulers of a multiprocessor; each issues one warp instruction per cycle.
inline constexpr int schedulers = 4;
/// Shared memory that the system adds to each block (CUDA C++ Programming Guide).
inline constexpr int shared_bytes_of_system = 1024;
/// Bytes that a multiprocessor takes from L2 per cycle. Assumption: this is the width of the port
/// since Volta; all measured L2 rates are below it.
inline constexpr double port_bytes_per_cycle = 64;
/// Memory latency under full load, divided by the latency when idle. Derived: on the A100-40G,
/// gpu-stream has 110,592 loads of 8 bytes in flight at 1,490 GB/s, which makes 594 ns per load;
/// gpu-latency measures 407 ns.
inline constexpr double loaded_latency = 1.46;
/// Cycles between two instructions of one warp. Assumption: dependent arithmetic takes 4 cycles.
inline constexpr double cycles_between_issues = 4;
/// The most that can be used of the issue slots, however many warps there are. Assumption.
inline constexpr double most_issue_share = 0.8;
/// The time that the host spends on a launch outside of a CUDA graph. Assumption: launches take
/// between 3 and 5 us.
inline constexpr double host_launch_s = 4e-6;

std::span<const card> cards();
/// The card with this name, which must be in the table of cards.cpp.
const card& card_of(std::string_view name);

} // namespace twill::bench::paper
