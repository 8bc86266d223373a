// stored_inbox: the queue through which the engine's threads pass events to the thread that keeps
// stored responses.
//
// Thread safety: any thread may call all functions (one mutex). The engine's callbacks share
// ownership, so the inbox may outlive its service.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "net/stored/stored_table.hpp"

namespace twill::net {

class stored_inbox {
public:
  using clock = std::chrono::steady_clock;
  using events = std::vector<std::pair<stored_entry_ptr, actors::event>>;

  void push(const stored_entry_ptr& of, actors::event ev) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    try {
      events_.emplace_back(of, std::move(ev));
    } catch (const std::bad_alloc&) { // the lost event would leave a gap in the records
      of->lost_event = true;
      woken_ = true;
    }
    arrived_.notify_one();
  }
  /// Wakes the keeper because it has work other than events.
  void wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    arrived_.notify_one();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    events_.clear();
    arrived_.notify_one();
  }
  /// Waits for events, for wake(), or until the time `until`. Returns false once the inbox is
  /// closed.
  bool take(events& out, clock::time_point until) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return closed_ || woken_ || !events_.empty(); };
    if (until == clock::time_point::max())
      arrived_.wait(lock, ready);
    else
      arrived_.wait_until(lock, until, ready);
    woken_ = false;
    out.clear();
    out.swap(events_);
    return !closed_;
  }

private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  events events_;
  bool woken_ = false;
  bool closed_ = false;
};

} // namespace twill::net
