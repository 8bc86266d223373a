#include "actors/scheduling/prefill_budget.hpp"

#include <algorithm>

namespace twill::actors {
namespace {

/// Moves an average an eighth of the way to a new value; the first value is taken as it is.
void follow(double& average, double value) {
  average = average == 0 ? value : average + (value - average) / 8;
}

/// Steps are planned for a share of the target time (see prefill_budget.hpp). The share is
/// multiplied by 1 - fall after a step with decodes and prompts that took longer than the target,
/// and by 1 + rise after any other step with both. It settles where one such step in a hundred
/// takes too long.
constexpr double fall = 0.05;
constexpr double rise = fall / 99;

} // namespace

void prefill_budget::note_step(std::int32_t decodes, std::int32_t prompt_tokens, double seconds) {
  if (prompt_tokens == 0) {
    follow(decodes_s_, seconds);
    return;
  }
  if (decodes > 0 && decodes_s_ < target_s_)
    share_ = std::clamp(share_ * (seconds > target_s_ ? 1 - fall : 1 + rise), least_share, 1.0);
  if (prompt_tokens >= least) // the time of fewer tokens cannot be told from noise
    follow(prompt_token_s_,
           std::max(seconds - (decodes > 0 ? decodes_s_ : 0), 1e-9) / prompt_tokens);
}

std::int32_t prefill_budget::prompt_tokens() const {
  if (prompt_token_s_ == 0) return std::min(at_first, most_);
  const double tokens =
      std::max(share_ * target_s_ - decodes_s_, stretch * decodes_s_) / prompt_token_s_;
  const auto in_steps = least * static_cast<std::int64_t>(std::min(tokens / least, 1e9));
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(std::max<std::int64_t>(in_steps, least), most_));
}

} // namespace twill::actors
