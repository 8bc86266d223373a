// drain_rate: measures how fast requests leave, and computes when refused requests should be
// retried.
//
// Pure: the caller passes the time; one thread at a time. The rate is an average over about the
// last ten seconds in which there were requests. Each refused client gets a retry time of its own,
// so that clients do not all come back together: the retry time of the previously refused client
// plus the average time between two departures. Many clients never come back, so these times are
// dropped when there is much room.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace twill::actors {

class drain_rate {
public:
  using time = std::chrono::steady_clock::time_point;
  /// The longest wait that a client is told.
  static constexpr double longest_s = 60;

  /// A request has left.
  void left(time now) {
    if (began_ == time{}) began_ = now;
    sum_ = sum_ * std::exp(-seconds(now - last_) / memory_s) + 1;
    last_ = now;
  }

  /// Must be called when a request arrives while there is none. The time since the last departure
  /// is then left out of the rate, since no request could leave.
  void resume(time now) {
    if (began_ == time{} || now <= last_) return;
    began_ += now - last_;
    last_ = now;
  }

  /// Departures per second; 1 while nothing was measured.
  double per_second(time now) const {
    if (began_ == time{}) return 1;
    const double recent = sum_ * std::exp(-seconds(now - last_) / memory_s);
    const double seen_s = std::max(seconds(now - began_), 1.0);
    return std::max(recent / (memory_s * (1 - std::exp(-seen_s / memory_s))), 1 / longest_s);
  }

  /// In how many whole seconds, from 1 to 60, a request that is refused now should come back.
  std::int32_t retry_after_s(time now) {
    const std::chrono::duration<double> turn(1 / per_second(now));
    next_turn_ = std::max(next_turn_, now) + std::chrono::duration_cast<time::duration>(turn);
    // Later turns are spread over the last half minute of that limit.
    while (seconds(next_turn_ - now) > longest_s)
      next_turn_ -= std::chrono::seconds(static_cast<int>(longest_s) / 2);
    return std::max(static_cast<std::int32_t>(std::ceil(seconds(next_turn_ - now))), 1);
  }

  /// Forgets the retry times of refused clients that have not come back. To be called when there is
  /// much room.
  void forget_turns() { next_turn_ = time{}; }

private:
  static constexpr double memory_s = 10;
  static double seconds(time::duration d) { return std::chrono::duration<double>(d).count(); }

  double sum_ = 0; ///< weighted count of departures; older ones count less
  time began_, last_, next_turn_;
};

} // namespace twill::actors
