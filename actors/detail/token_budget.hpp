// token_budget: a token bucket that limits how many tokens one tenant may use per minute.
//
// Thread safety: every function locks the one mutex. A full bucket holds the tokens of one minute.
// A tenant that has used more tokens than it took has a debt; all its requests are refused until
// the refill over time has covered the debt. After each take() and spend(), settle() must be called
// once, when it is known how many of the tokens were used.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>

namespace twill::actors {

class token_budget {
public:
  using time = std::chrono::steady_clock::time_point;

  explicit token_budget(std::int64_t per_minute) : per_minute_(per_minute) {}

  /// Takes tokens, or takes none and returns the seconds until there will be enough. A request for
  /// more than a minute's tokens needs a full bucket.
  std::optional<std::int32_t> take(std::int64_t tokens, time now) {
    const std::lock_guard lock(mutex_);
    if (const auto wait_s = wait_for(tokens, now)) return wait_s;
    charge(tokens);
    return std::nullopt;
  }
  /// As take(), but takes no tokens.
  std::optional<std::int32_t> check(std::int64_t tokens, time now) {
    const std::lock_guard lock(mutex_);
    return wait_for(tokens, now);
  }
  /// Tokens that were used without having been taken.
  void spend(std::int64_t tokens, time now) {
    const std::lock_guard lock(mutex_);
    fill(now);
    charge(tokens);
  }
  /// Of `charged` tokens that were taken or spent, `used` were really used; the others are given
  /// back.
  void settle(std::int64_t charged, std::int64_t used) {
    const std::lock_guard lock(mutex_);
    charged_ -= charged;
    used_ = std::max(used_ - static_cast<double>(std::max<std::int64_t>(charged - used, 0)), 0.0);
  }
  /// Tokens that were taken or spent and have not been settled.
  std::int64_t charged() const {
    const std::lock_guard lock(mutex_);
    return charged_;
  }

  std::int64_t per_minute() const {
    const std::lock_guard lock(mutex_);
    return per_minute_;
  }
  /// Changes the limit. Tokens used so far stay counted, less those that the old limit has refilled
  /// until now.
  void set_per_minute(std::int64_t tokens, time now) {
    const std::lock_guard lock(mutex_);
    fill(now);
    per_minute_ = tokens;
  }

private:
  void charge(std::int64_t tokens) {
    used_ += static_cast<double>(tokens);
    charged_ += tokens;
  }

  std::optional<std::int32_t> wait_for(std::int64_t tokens, time now) {
    fill(now);
    const auto wanted = static_cast<double>(std::min(tokens, per_minute_));
    const double lacking = used_ + wanted - static_cast<double>(per_minute_);
    if (lacking <= 0) return std::nullopt;
    constexpr double longest = std::numeric_limits<std::int32_t>::max();
    return static_cast<std::int32_t>(std::min(std::ceil(lacking / rate()), longest));
  }

  double rate() const { return static_cast<double>(per_minute_) / 60; } ///< tokens per second

  /// Reduces the used tokens by what the elapsed time has paid.
  void fill(time now) {
    if (now <= last_) return;
    if (last_ != time{})
      used_ = std::max(used_ - rate() * std::chrono::duration<double>(now - last_).count(), 0.0);
    last_ = now;
  }

  mutable std::mutex mutex_; ///< guards the members below
  std::int64_t per_minute_;
  double used_ = 0; ///< used tokens of the bucket; more than per_minute_ while in debt
  std::int64_t charged_ = 0;
  time last_;
};

} // namespace twill::actors
