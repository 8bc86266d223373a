// input_budget: counts the bytes of all HTTP bodies and WebSocket messages that are being received,
// over all sockets. When the total exceeds the budget, slow messages are given up: their sessions
// drop what has arrived and answer with an error.
//
// Each socket has an object of the class `account`, which counts the bytes of its message. While
// the budget is full, messages that have arrived for a second at less than the least rate
// (`server.body_rate`) are given up, the largest first. A client that sends fast enough is refused
// only if giving up slow messages did not free enough. The bytes of a message that is given up
// still count until they are freed, so all messages together never hold more than twice the budget.
// Thread safety: use an account on its session's strand. Accounts must not outlive the budget.
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

    /// `give_up` may be called by any thread and must not block. It should post a function to the
    /// strand of the account's socket. If is_cut() is true there, that function must drop the
    /// message and call clear(). If is_cut() is false, the message was received completely in the
    /// meantime, and is kept. Call on_give_up() before the first set().
    void on_give_up(std::function<void()> give_up) { give_up_ = std::move(give_up); }

    /// Sets how many bytes of the message that is being received have arrived so far. Returns false
    /// if there is no room for the message; its bytes then no longer count.
    bool set(std::int64_t bytes, time now = clock::now());
    /// Call this when the message has been received completely, or has been dropped.
    void clear();
    /// Returns whether the message must be given up.
    bool is_cut() const;

  private:
    friend class input_budget;

    input_budget& owner_;
    std::function<void()> give_up_;
    // The owner's mutex protects these members; only bytes_ may be read by the strand without it.
    std::int64_t bytes_ = 0;
    /// The number of bytes that had arrived at `mark_time_`, the last time when the message met the
    /// least rate (`server.body_rate`).
    std::int64_t mark_bytes_ = 0;
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
  std::unordered_set<account*> accounts_; ///< accounts of messages that are only partly received
  std::int64_t total_ = 0;
  /// The part of `total_` that belongs to messages which are given up and will be freed soon.
  std::int64_t given_up_ = 0;
  time looked_at_{};
};

} // namespace twill::net
