// plain_token_budget: a reference for token_budget, which limits how many tokens a tenant may use
// per minute. The reference remembers every operation, and adds them up anew for every answer, in
// whole numbers.
//
// Times are in ticks of a quarter of a second and tokens in sixteenths, so that a rate which is a
// multiple of 15 tokens a minute is a whole number of sixteenths per tick.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace twill::actors {

class plain_token_budget {
public:
  explicit plain_token_budget(std::int64_t per_minute) { note(0, 0, per_minute); }

  std::optional<std::int32_t> check(std::int64_t tokens, std::int64_t tick) {
    note(tick, 0, per_minute());
    const std::int64_t lacking = used() + 16 * (std::min(tokens, per_minute()) - per_minute());
    if (lacking <= 0) return std::nullopt;
    const std::int64_t a_second = 4 * (per_minute() / 15);
    return static_cast<std::int32_t>(std::min<std::int64_t>(
        (lacking + a_second - 1) / a_second, std::numeric_limits<std::int32_t>::max()));
  }
  std::optional<std::int32_t> take(std::int64_t tokens, std::int64_t tick) {
    const auto wait_s = check(tokens, tick);
    if (!wait_s) spend(tokens, tick);
    return wait_s;
  }
  void spend(std::int64_t tokens, std::int64_t tick) {
    note(tick, tokens, per_minute());
    charged_ += tokens;
  }
  void settle(std::int64_t charged, std::int64_t used) {
    if (used < charged) note(done_.back().tick, used - charged, per_minute());
    charged_ -= charged;
  }
  std::int64_t charged() const { return charged_; }
  void set_per_minute(std::int64_t per_minute, std::int64_t tick) { note(tick, 0, per_minute); }
  std::int64_t per_minute() const { return done_.back().per_minute; }

private:
  struct deed {
    std::int64_t tick, tokens;
    std::int64_t per_minute; ///< the rate from this time on
  };

  /// Threads may report times out of order; the budget's own time never goes back.
  void note(std::int64_t tick, std::int64_t tokens, std::int64_t per_minute) {
    if (!done_.empty()) tick = std::max(tick, done_.back().tick);
    done_.push_back({tick, tokens, per_minute});
  }

  std::int64_t used() const {
    std::int64_t sixteenths = 0;
    for (std::size_t i = 1; i < done_.size(); ++i) {
      const std::int64_t ticks = done_[i].tick - done_[i - 1].tick;
      sixteenths = std::max<std::int64_t>(sixteenths - ticks * (done_[i - 1].per_minute / 15), 0);
      sixteenths = std::max<std::int64_t>(sixteenths + 16 * done_[i].tokens, 0);
    }
    return sixteenths;
  }

  std::vector<deed> done_;
  std::int64_t charged_ = 0;
};

} // namespace twill::actors
