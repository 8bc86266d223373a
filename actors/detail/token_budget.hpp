// token_budget: the tokens that one tenant may use, so many a minute: a token bucket.
//
// Thread safety: every function takes the one mutex. The bucket holds a minute's tokens when it is
// full. What is used beyond what was taken makes a debt, in which everything is refused until the
// time has paid it. Whoever took or spent tokens settles once for all of them.
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

  /// Takes tokens; or takes none and says in how many seconds there will be enough. Whoever asks
  /// for more than a minute's tokens needs a full bucket.
  std::optional<std::int32_t> take(std::int64_t tokens, time now) {
    const std::lock_guard lock(mutex_);
    if (const auto wait_s = wait_for(tokens, now)) return wait_s;
    charge(tokens);
    return std::nullopt;
  }
  /// As take(), without taking.
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
  /// Of so many tokens that were taken or spent, so many were used; the others are given back.
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
  /// What was used stays used, and what time has paid of it until now stays paid.
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

  /// Time pays what was used.
  void fill(time now) {
    if (now <= last_) return;
    if (last_ != time{})
      used_ = std::max(used_ - rate() * std::chrono::duration<double>(now - last_).count(), 0.0);
    last_ = now;
  }

  mutable std::mutex mutex_; ///< guards what follows
  std::int64_t per_minute_;
  double used_ = 0; ///< of the bucket; more than per_minute_ in debt
  std::int64_t charged_ = 0;
  time last_;
};

} // namespace twill::actors
