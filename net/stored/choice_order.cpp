#include "net/stored/choice_order.hpp"

#include <utility>

namespace twill::net {

choice_order::choice_order(std::int32_t n_choices)
    : choices_(static_cast<std::size_t>(n_choices)) {}

bool choice_order::is_of_choice(const actors::event& ev) {
  return !ev.error && (!ev.tokens.empty() || ev.finish.has_value());
}

void choice_order::pass(const actors::event& ev) {
  const auto at = static_cast<std::size_t>(ev.choice);
  if (!is_of_choice(ev) || at >= choices_.size()) return;
  turn_ = at;
  note(ev);
}

/// The event of the choice whose turn it is has come.
void choice_order::note(const actors::event& ev) {
  n_tokens_ += static_cast<std::int32_t>(ev.tokens.size());
  if (ev.finish && !std::exchange(choices_[turn_].over, true)) ++n_over_;
  end_turn();
}

void choice_order::end_turn() {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    turn_ = (turn_ + 1) % choices_.size();
    if (!choices_[turn_].over) return;
  }
}

void choice_order::add(actors::event&& ev, std::vector<actors::event>& out) {
  const auto at = static_cast<std::size_t>(ev.choice);
  if (!is_of_choice(ev) || at >= choices_.size()) {
    out.push_back(std::move(ev));
    return;
  }
  choices_[at].waiting.push_back(std::move(ev));
  while (n_over_ < choices_.size() && !choices_[turn_].waiting.empty()) {
    auto& next = out.emplace_back(std::move(choices_[turn_].waiting.front()));
    choices_[turn_].waiting.pop_front();
    note(next);
    next.last = n_over_ == choices_.size();
    next.use.completion_tokens = n_tokens_;
  }
}

} // namespace twill::net
