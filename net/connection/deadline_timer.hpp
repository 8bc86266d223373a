// deadline_timer: the one timer of a session. Moving its deadline to a later time costs nothing.
//
// Use it on the session's strand. A session moves its deadlines to a later time with every byte
// that it receives; the timer is rearmed only when the earliest deadline becomes earlier. When the
// timer fires, the session checks which of its deadlines have passed.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include <boost/asio/steady_timer.hpp>

#include "net/beast.hpp"

namespace twill::net {

class deadline_timer {
public:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;

  explicit deadline_timer(const asio::any_io_executor& executor) : timer_(executor) {}

  /// Calls `on_fire` at `when`, or earlier if the timer is already armed for an earlier time.
  /// `on_fire` gets a function that marks the timer as no longer armed; `on_fire` must call this
  /// function, check the clock, and then call at() again. The timer does not keep its owner alive,
  /// so `on_fire` should hold a weak pointer to the owner.
  template <class OnFire>
  void at(time when, OnFire on_fire) {
    if (armed_.has_value() && *armed_ <= when) return;
    armed_ = when;
    timer_.expires_at(when);
    timer_.async_wait([this, on_fire = std::move(on_fire)](const error_code& error) {
      if (error) return; // the timer was moved, or its owner is gone
      on_fire([this] { armed_.reset(); });
    });
  }
  void cancel() {
    armed_.reset();
    timer_.cancel();
  }

private:
  asio::steady_timer timer_;
  std::optional<time> armed_;
};

} // namespace twill::net
