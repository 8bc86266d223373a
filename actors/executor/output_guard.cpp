#include "actors/executor/output_guard.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "models/text/grammar/trial.hpp"

namespace twill::actors {

namespace {

/// The limit for one step: ten times what a grammar may take for a mask when it is tried out.
constexpr auto most_step_time = 10 * models::grammar::most_mask_time;

std::uint32_t bit_of(std::int32_t id) {
  return std::uint32_t{1} << (id % 32);
}

} // namespace

output_guard::output_guard(std::shared_ptr<const output_rules> rules)
    : rules_(std::move(rules)), matcher_(rules_->grammar) {
  if (rules_->begins_in_reasoning)
    phase_ = phase::reasoning;
  else if (rules_->reasoning_begin_token >= 0)
    phase_ = phase::first_token;
}

bool output_guard::accept(std::int32_t token) {
  if (token < 0 || token >= rules_->tokens->size()) return false;
  switch (phase_) {
  case phase::first_token:
    phase_ = token == rules_->reasoning_begin_token ? phase::reasoning : phase::answer;
    return phase_ == phase::reasoning || answer(token);
  case phase::reasoning:
    return reason(rules_->tokens->bytes[static_cast<std::size_t>(token)]);
  case phase::answer:
    break;
  }
  return answer(token);
}

bool output_guard::answer(std::int32_t token) {
  const auto began = models::grammar::thread_time();
  const bool accepted = matcher_.accept(token);
  accept_time_ = models::grammar::thread_time() - began;
  if (!accepted) return false;
  if (rules_->is_json) space_.push(rules_->tokens->bytes[static_cast<std::size_t>(token)]);
  return true;
}

/// Takes the bytes of a token that was drawn while the model reasons. If the token ends the
/// reasoning and has further text, that text, without leading white space, is the beginning of the
/// answer.
bool output_guard::reason(const std::string& bytes) {
  const std::string& end = rules_->reasoning_end;
  tail_ += bytes;
  const auto at = tail_.find(end);
  if (at == std::string::npos) {
    tail_.erase(0, tail_.size() - std::min(tail_.size(), end.size() - 1));
    return true;
  }
  phase_ = phase::answer;
  const auto answer = tail_.find_first_not_of(" \t\r\n", at + end.size());
  const std::string rest = answer == std::string::npos ? std::string() : tail_.substr(answer);
  tail_.clear();
  if (rest.empty()) return true;
  if (rules_->is_json) space_.push(rest);
  return matcher_.accept_text(rest);
}

/// Removes the tokens of white space only from the mask, if other tokens are left.
void output_guard::forbid_space(std::span<std::uint32_t> mask) const {
  const auto& space = rules_->tokens->space;
  bool any = false;
  for (std::size_t i = 0; i < mask.size() && !any; ++i)
    any = (mask[i] & ~space[i]) != 0;
  for (std::size_t i = 0; i < mask.size() && any; ++i)
    mask[i] &= ~space[i];
}

void output_guard::fill_mask(std::span<std::uint32_t> mask) {
  if (phase_ == phase::reasoning) {
    // All tokens may follow except an end id, which would leave out the answer.
    std::fill(mask.begin(), mask.end(), ~std::uint32_t{0});
    for (const std::int32_t id : rules_->tokens->end_ids)
      mask[static_cast<std::size_t>(id / 32)] &= ~bit_of(id);
    return;
  }
  const auto began = models::grammar::thread_time();
  matcher_.fill_next_mask({reinterpret_cast<std::int32_t*>(mask.data()), mask.size()});
  if (models::grammar::thread_time() - began + accept_time_ > most_step_time) {
    std::fill(mask.begin(), mask.end(), std::uint32_t{0});
    return;
  }
  if (space_.is_enough()) forbid_space(mask);
  if (phase_ == phase::first_token) {
    const std::int32_t begin = rules_->reasoning_begin_token;
    mask[static_cast<std::size_t>(begin / 32)] |= bit_of(begin);
  }
}

} // namespace twill::actors
