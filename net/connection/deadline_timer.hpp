// deadline_timer: one timer per session; moving it to a later time costs nothing.
//
// On the session's strand. Sessions push their deadlines back with every byte; the timer is touched
// only when the earliest one comes nearer, and on firing asks the session what is due now.
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

  /// `on_fire` runs at `when` or, if an earlier time is armed already, at that one: it must look at
  /// the clock and call again. It keeps its owner alive as it sees fit (a weak pointer).
  template <class OnFire>
  void at(time when, OnFire on_fire) {
    if (armed_.has_value() && *armed_ <= when) return;
    armed_ = when;
    timer_.expires_at(when);
    timer_.async_wait([this, on_fire = std::move(on_fire)](const error_code& error) {
      if (error) return; // it was moved, or its owner is gone
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
