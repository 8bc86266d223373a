// output_budget: counts the output that clients have not taken yet, over all sockets, and cuts off
// those who do not read when it is too much.
//
// Each socket has an account. While the budget is full, new requests are refused and streams rest
// (flow_gate); relieve() closes the sockets that take nothing, those with the most bytes first.
// Thread safety: full() and relieve() any thread; an account is used on its session's strand.
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
    /// `cut` closes the socket; it is called by relieve(), at most once, and must not wait.
    account(output_budget& owner, std::function<void()> cut);
    ~account();
    account(const account&) = delete;
    account& operator=(const account&) = delete;

    /// The bytes that wait for the client now, those that are being written included.
    void set(std::int64_t bytes);
    /// The bytes that the client has taken so far; only its socket writes it.
    std::atomic<std::int64_t>& taken() noexcept { return taken_; }

  private:
    friend class output_budget;

    output_budget& owner_;
    std::function<void()> cut_;
    std::atomic<std::int64_t> bytes_{0};
    std::atomic<std::int64_t> taken_{0};
    // What relieve() saw, under the owner's mutex.
    std::int64_t seen_taken_ = -1;
    time seen_at_{};
    bool is_cut_ = false;
  };

  bool full() const noexcept { return total_.load(std::memory_order_relaxed) > max_bytes_; }
  std::int64_t total_bytes() const noexcept { return total_.load(std::memory_order_relaxed); }
  std::int64_t max_bytes() const noexcept { return max_bytes_; }
  /// Called on the strand of a session whose output has filled the budget, once each time. To be
  /// set before the first account.
  void on_full(std::function<void()> call) { on_full_ = std::move(call); }

  /// To be called every `relief_interval` while the budget is full. Returns how many sockets it
  /// cut.
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
