// link_pacer: makes copies to and from the device take the time that a slower link would take, so
// that a host-only machine can act out PCIe. What it paces is simulated, and reported as such.
//
// Thread safety: any thread; transfers share one link, first come first served.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

namespace twill::models::offload {

class link_pacer {
public:
  /// `bytes_per_second` 0: no pacing.
  explicit link_pacer(double bytes_per_second) : rate_(bytes_per_second) {}

  /// Returns when the link would have moved `bytes`.
  void pass(std::int64_t bytes) {
    if (rate_ <= 0) return;
    clock::time_point end;
    {
      const std::lock_guard lock(mutex_);
      const auto begin = std::max(clock::now(), free_at_);
      free_at_ = begin + std::chrono::duration_cast<clock::duration>(
                             std::chrono::duration<double>(static_cast<double>(bytes) / rate_));
      end = free_at_;
    }
    std::this_thread::sleep_until(end);
  }

private:
  using clock = std::chrono::steady_clock;
  double rate_;
  std::mutex mutex_;
  clock::time_point free_at_{};
};

} // namespace twill::models::offload
