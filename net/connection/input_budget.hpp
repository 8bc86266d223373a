// input_budget: counts the bodies and WebSocket messages that are being received, over all sockets,
// and makes room when they are too many.
//
// Each socket has an account. While the budget is full, messages that have come slower than the
// least rate for a second are given up, the largest first; a client that sends at a fair pace is
// refused only when those were not enough. What a given-up message holds counts until it is freed,
// so all messages together never hold more than twice the budget.
// Thread safety: an account is used on its session's strand. Accounts must not outlive the budget.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

namespace twill::net {

class input_budget {
public:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;

  input_budget(std::int64_t max_bytes, std::int64_t least_rate_bytes_per_s)
      : max_bytes_(max_bytes), least_rate_(static_cast<double>(least_rate_bytes_per_s)) {}
  input_budget(const input_budget&) = delete;
  input_budget& operator=(const input_budget&) = delete;

  class account {
  public:
    explicit account(input_budget& owner) : owner_(owner) {}
    ~account() { clear(); }
    account(const account&) = delete;
    account& operator=(const account&) = delete;

    /// `give_up` is called by any thread and must not wait. Where the account's own thread then
    /// finds is_cut(), it must drop the message and call clear(); otherwise the message was whole
    /// in the meantime, and is kept. Call this before the first set().
    void on_give_up(std::function<void()> give_up) { give_up_ = std::move(give_up); }

    /// The bytes so far of the message that is being received. False: there is no room for it, and
    /// nothing of it is counted any more.
    bool set(std::int64_t bytes, time now = clock::now());
    /// The message is whole, or is not kept.
    void clear();
    /// The message is to be given up.
    bool is_cut() const;

  private:
    friend class input_budget;

    input_budget& owner_;
    std::function<void()> give_up_;
    // Under the owner's mutex, but that the strand reads its own bytes_.
    std::int64_t bytes_ = 0;
    std::int64_t mark_bytes_ = 0; ///< when the least rate was last kept, and the bytes then
    time mark_time_{};
    bool is_cut_ = false;
  };

  std::int64_t total_bytes() const;

private:
  void forget(account& which);
  bool is_slow(const account& which, time now) const;
  std::vector<std::function<void()>> make_room(time now);

  const std::int64_t max_bytes_;
  const double least_rate_; ///< bytes per second
  mutable std::mutex mutex_;
  std::unordered_set<account*> accounts_; ///< of messages that have begun and are not whole
  std::int64_t total_ = 0;
  std::int64_t given_up_ = 0; ///< of `total_`: what is about to be freed
  time looked_at_{};
};

} // namespace twill::net
