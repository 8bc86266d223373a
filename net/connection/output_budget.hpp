// output_budget: counts the output that clients have not read yet, over all sockets, and cuts off
// clients that do not read when the total exceeds the budget.
//
// Each socket has an object of the class `account`, which counts its unread bytes. While the budget
// is full, new requests are refused and streams are paused (see flow_gate). relieve() closes
// sockets whose clients take no output, those with the most waiting bytes first.
// Thread safety: any thread may call full() and relieve(). Use an account on its session's strand.
// Accounts must not outlive the budget.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_set>

namespace twill::net {

class output_budget {
public:
  using time = std::chrono::steady_clock::time_point;

  explicit output_budget(std::int64_t max_bytes) : max_bytes_(max_bytes) {}
  output_budget(const output_budget&) = delete;
  output_budget& operator=(const output_budget&) = delete;

  class account {
  public:
    /// `cut` must close the socket. relieve() calls it at most once; it must not block.
    account(output_budget& owner, std::function<void()> cut);
    ~account();
    account(const account&) = delete;
    account& operator=(const account&) = delete;

    /// Sets the number of bytes that wait for the client, including those of the write in progress.
    void set(std::int64_t bytes);
    /// Counts the bytes that the client has taken so far. Only the account's socket may write it.
    std::atomic<std::int64_t>& taken() noexcept { return taken_; }

  private:
    friend class output_budget;

    output_budget& owner_;
    std::function<void()> cut_;
    std::atomic<std::int64_t> bytes_{0};
    std::atomic<std::int64_t> taken_{0};
    // The state that relieve() saw last, protected by the owner's mutex.
    std::int64_t seen_taken_ = -1;
    time seen_at_{};
    bool is_cut_ = false;
  };

  bool full() const noexcept { return total_.load(std::memory_order_relaxed) > max_bytes_; }
  std::int64_t total_bytes() const noexcept { return total_.load(std::memory_order_relaxed); }
  std::int64_t max_bytes() const noexcept { return max_bytes_; }
  /// Sets the function that is called each time when the budget becomes full, on the strand of the
  /// session whose output filled it. Call on_full() before the first account is created.
  void on_full(std::function<void()> call) { on_full_ = std::move(call); }

  /// Call this every `relief_interval` while the budget is full. Returns how many sockets it has
  /// cut off.
  std::size_t relieve(time now);
  static constexpr std::chrono::milliseconds relief_interval{250};

private:
  const std::int64_t max_bytes_;
  std::function<void()> on_full_;
  std::atomic<std::int64_t> total_{0};
  std::mutex mutex_;
  std::unordered_set<account*> accounts_;
};

} // namespace twill::net
