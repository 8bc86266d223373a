// memory_meter: how much of a host device's memory was reserved and never touched.
//
// An allocation on a host device is only address space: the system commits a page when it is first
// written. A KV arena that is sized for hundreds of sequences takes next to no memory until those
// sequences are served. The meter asks the system which pages are committed.
//
// Threads: any; each function locks the meter's one mutex. The device adds each allocation and
// removes it when it is freed. A meter may outlive its device and then has nothing left to measure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace twill::gpu {

class device;

class memory_meter {
public:
  /// Adds an allocation; `data` must be the start of a page.
  void add(const void* data, std::size_t bytes);
  void remove(const void* data);

  /// Bytes of the added memory in pages that the system has not committed. A call takes at most a
  /// few milliseconds: where more than 16 GiB were added, the meter checks an evenly spread sample
  /// of the pages. The meter reuses an answer for fifty times as long as it took to find.
  std::int64_t untouched_bytes() const;

private:
  using clock = std::chrono::steady_clock;
  std::int64_t look() const;

  mutable std::mutex mutex_;
  mutable std::int64_t untouched_bytes_ = 0;
  mutable clock::time_point
      look_again_{}; ///< until this time untouched_bytes() returns `untouched_bytes_`
  std::map<const void*, std::size_t> parts_; ///< begin and bytes of each allocation
};

/// The meter of a host device. Null for a GPU, where an allocation takes its memory at once.
std::shared_ptr<const memory_meter> meter_of(const device& dev);

} // namespace twill::gpu
