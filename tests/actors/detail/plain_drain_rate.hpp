// plain_drain_rate: a reference for drain_rate, which measures how fast requests leave the engine.
// The reference remembers when every request left, and computes each answer anew from all these
// times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

namespace twill::actors {

class plain_drain_rate {
public:
  using time = std::chrono::steady_clock::time_point;

  void left(time now) { log_.push_back({now, false}); }
  void resume(time now) { log_.push_back({now, true}); }
  void forget_turns() { turn_ = {}; }

  double per_second(time now) const {
    // Seconds of a clock that stands still while there are no requests.
    std::vector<double> left_at;
    double rest_s = 0;
    time last{};
    for (const fact& one : log_) {
      if (!one.resumes)
        left_at.push_back(seconds(one.at.time_since_epoch()) - rest_s);
      else if (!left_at.empty() && one.at > last)
        rest_s += seconds(one.at - last);
      last = std::max(last, one.at);
    }
    if (left_at.empty()) return 1;
    const double now_s = seconds(now.time_since_epoch()) - rest_s;
    double recent = 0;
    for (const double at : left_at)
      recent += std::exp((at - now_s) / 10);
    const double seen_s = std::max(now_s - left_at.front(), 1.0);
    return std::max(recent / (10 * (1 - std::exp(-seen_s / 10))), 1.0 / 60);
  }

  /// The answer, or two possible answers where rounding decides between them.
  std::vector<std::int32_t> retry_after_s(time now) {
    const double rate = per_second(now);
    turn_ = std::max(turn_, now) + std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 / rate));
    while (turn_ - now > std::chrono::minutes(1))
      turn_ -= std::chrono::seconds(30);
    const bool is_exact = rate == 1 || rate == 1.0 / 60;
    const double blur = is_exact && !inexact_ ? 0 : 1e-6;
    inexact_ = inexact_ || !is_exact;
    const double turn_s = seconds(turn_ - now);
    const auto rounded = [](double s) {
      return std::max(static_cast<std::int32_t>(std::ceil(s)), 1);
    };
    return {rounded(turn_s - blur), rounded(turn_s + blur)};
  }

private:
  struct fact {
    time at;
    bool resumes;
  };
  static double seconds(time::duration d) { return std::chrono::duration<double>(d).count(); }

  std::vector<fact> log_;
  time turn_{};
  bool inexact_ = false; ///< some turn was rounded
};

} // namespace twill::actors
