#include "net/stored/choice_order.hpp"

namespace twill::net {

choice_order::choice_order(std::int32_t n_choices)
    : choices_(static_cast<std::size_t>(n_choices)) {}

bool choice_order::is_of_choice(const actors::event& ev) {
  return !ev.error && (!ev.tokens.empty() || ev.finish.has_value());
}

void choice_order::end_turn() {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    turn_ = (turn_ + 1) % choices_.size();
    if (!choices_[turn_].over) return;
  }
}

void choice_order::add(const actors::event& ev, std::size_t place, std::deque<std::size_t>& out) {
  const auto at = static_cast<std::size_t>(ev.choice);
  if (!is_of_choice(ev) || at >= choices_.size()) {
    if (ev.error) give_up_turns(out);
    out.push_back(place);
    return;
  }
  choices_[at].waiting.push_back({place, ev.finish.has_value()});
  while (n_over_ < choices_.size() && !choices_[turn_].waiting.empty()) {
    auto& now = choices_[turn_];
    out.push_back(now.waiting.front().place);
    now.over = now.waiting.front().finishes;
    now.waiting.pop_front();
    if (now.over) ++n_over_;
    end_turn();
  }
}

/// Delivers all events that still wait for earlier events of other choices (see choice_order.hpp).
/// Called after an error, when no more events arrive.
void choice_order::give_up_turns(std::deque<std::size_t>& out) {
  for (auto& one : choices_) {
    for (const auto& waiting : one.waiting)
      out.push_back(waiting.place);
    one.waiting.clear();
  }
}

void choice_order::adjust(actors::event& ev) {
  if (!is_of_choice(ev)) return;
  n_tokens_ += static_cast<std::int32_t>(ev.tokens.size());
  if (ev.finish) ++n_finished_;
  ev.last = n_finished_ == choices_.size();
  ev.use.completion_tokens = n_tokens_;
}

} // namespace twill::net
