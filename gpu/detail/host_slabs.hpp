// host_slabs: memory of a host device for weights, which are written once and then read by every
// step.
//
// A forward pass reads every weight, one small matrix after the other. With 4 KiB pages the
// processor walks the page table, and its prefetchers stop, at every page boundary. So allocations
// of up to 4 MiB share slabs of 32 MiB, and settle() moves the slabs to huge pages. The system can
// take milliseconds to clear a huge page that it hands out for the first time. Where the moves
// together would delay the start of the daemon too much, a background thread makes them.
//
// Threads: one thread at a time may call the functions; the background thread of settle() is
// synchronised internally. Allocations are zero-filled and 64-byte aligned. A slab is returned to
// the system when its last allocation is given back.
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
  /// Moves all memory handed out so far to huge pages; addresses stay valid. If the first pages
  /// suggest that moving all pages takes less than `at_once`, settle() returns when all have moved.
  /// Otherwise settle() returns early and a background thread moves the remaining pages, using a
  /// tenth of a core's time so that token streams are hardly slowed down.
  void settle(clock::duration at_once);

private:
  struct slab {
    char* memory = nullptr;
    std::size_t bytes = 0;
    std::size_t used = 0;        ///< bytes handed out, counted from the slab's beginning
    std::size_t allocations = 0; ///< allocations that have not been given back
  };
  /// Waits for `time`. Returns false if the background thread has been asked to stop.
  bool rest(clock::duration time);
  void stop_settling();

  std::vector<slab> slabs_;
  std::thread settling_;
  std::mutex mutex_; ///< guards stop_
  std::condition_variable stopped_;
  bool stop_ = false;
};

} // namespace twill::gpu::detail
