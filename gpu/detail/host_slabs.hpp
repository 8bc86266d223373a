// host_slabs: memory of a host build for weights, which are written once and then streamed.
//
// A forward pass reads every weight, one small matrix after the other. On 4 KiB pages the processor
// walks page tables and stops its prefetchers at every page. So allocations below a few MiB share
// slabs, and settle() moves slabs to huge pages. Clearing a huge page that the system hands out for
// the first time can take milliseconds: where they would add up to more than a start should wait
// for, the pages move in the background.
//
// Threads: one thread at a time, apart from the one that settle() starts. Allocations are
// zero-filled and 64-byte aligned. A slab's memory goes back to the system with its last
// allocation.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace twill::gpu::detail {

class host_slabs {
public:
  host_slabs() = default;
  host_slabs(const host_slabs&) = delete;
  host_slabs& operator=(const host_slabs&) = delete;
  ~host_slabs();

  /// Null when the system refuses the memory.
  void* take(std::size_t bytes);
  /// Returns false for memory that take() did not hand out.
  bool give_back(const void* data) noexcept;
  using clock = std::chrono::steady_clock;
  /// Moves all memory handed out so far to huge pages; addresses stay. It returns once all has
  /// moved, where that takes no longer than `at_once` by the pace of the first pages; else the rest
  /// moves afterwards, in a tenth of a core's time, so that streams keep their pace meanwhile.
  void settle(clock::duration at_once);

private:
  struct slab {
    char* memory = nullptr;
    std::size_t bytes = 0;
    std::size_t used = 0;        ///< bytes handed out, from the beginning on
    std::size_t allocations = 0; ///< not given back yet
  };
  /// Waits for `time`; false when settling is to stop.
  bool rest(clock::duration time);
  void stop_settling();

  std::vector<slab> slabs_;
  std::thread settling_;
  std::mutex mutex_; ///< guards stop_
  std::condition_variable stopped_;
  bool stop_ = false;
};

} // namespace twill::gpu::detail
