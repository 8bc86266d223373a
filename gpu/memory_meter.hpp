// memory_meter: how much of a host device's memory was reserved and never touched.
//
// Device memory of a host is address space: the system commits a page when it is first written. A
// KV arena that was sized for hundreds of sequences takes next to nothing until they come. The
// meter asks the system which pages are there.
//
// Threads: any; each function takes the one mutex. The device adds and removes what it allocates
// and frees. A meter may outlive its device; it then has nothing to measure.
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
  /// Memory that begins with a page.
  void add(const void* data, std::size_t bytes);
  void remove(const void* data);

  /// Bytes of the memory that lie in pages which the system has not committed. It takes at most a
  /// few milliseconds: of more than 16 GiB it looks at an even sample, and it repeats its answer
  /// until fifty times as long has passed as it took to find.
  std::int64_t untouched_bytes() const;

private:
  using clock = std::chrono::steady_clock;
  std::int64_t look() const;

  mutable std::mutex mutex_;
  mutable std::int64_t untouched_bytes_ = 0;
  mutable clock::time_point look_again_{};   ///< until then the answer is `untouched_bytes_`
  std::map<const void*, std::size_t> parts_; ///< begin and bytes of each allocation
};

/// The meter of a host device. Null for other devices, whose memory is taken when it is reserved.
std::shared_ptr<const memory_meter> meter_of(const device& dev);

} // namespace twill::gpu
