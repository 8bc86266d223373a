// link_pacer: delays copies to and from the device as if they passed over a slower link, so that a
// machine without a GPU can simulate PCIe. Reports say that such a link is simulated.
//
// Thread safety: any thread. All transfers share one link and use it in the order of their calls.
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

  /// Waits until the link would have moved `bytes` after all earlier transfers.
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
