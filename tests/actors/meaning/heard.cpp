#include "tests/actors/meaning/heard.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace twill::test {

actors::event_callback heard::next_run() {
  const std::lock_guard lock(mutex_);
  const std::size_t run = ++run_;
  begun_ = over_ = false;
  error_.reset();
  return [this, run](actors::event e) { hear(run, std::move(e)); };
}

void heard::stop() {
  const std::lock_guard lock(mutex_);
  ++run_;
}

void heard::hear(std::size_t run, actors::event e) {
  const std::lock_guard lock(mutex_);
  if (run != run_) return;
  if (over_) broken_ = "an event after the last one";
  over_ = e.last;
  if (e.error) {
    error_ = e.error;
    if (!e.last) broken_ = "an error that is not the last event";
    return;
  }
  if (e.started == begun_) broken_ = e.started ? "a second first event" : "no first event";
  begun_ = true;
  if (e.started && std::exchange(started_, true)) return;
  events_.push_back(std::move(e));
}

std::size_t heard::n_events() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}
bool heard::run_is_over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}
std::optional<actors::request_error> heard::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}
std::vector<actors::event> heard::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}
std::string heard::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

namespace {

std::string written(const actors::token_logprob& t) {
  return std::to_string(t.id) + "(" + std::to_string(t.logprob) + "," +
         std::to_string(std::bit_cast<std::uint32_t>(t.logprob)) + "," + t.bytes + ") ";
}

std::string written(const std::vector<actors::token_output>& tokens) {
  std::string text;
  for (const auto& token : tokens) {
    text += written(token.chosen);
    for (const auto& other : token.top)
      text += "/" + written(other);
  }
  return text;
}

/// A text with everything of an event that must be equal in each engine.
std::string written(const actors::event& e) {
  std::string text = e.started ? "started " : "";
  for (const auto id : e.prompt_ids)
    text += std::to_string(id) + " ";
  text += written(e.prompt_scores) + written(e.tokens) + "\"" + e.text + "\"";
  for (const auto& part : e.parts)
    text += "<" + std::to_string(static_cast<int>(part.kind)) + part.text +
            std::to_string(part.call) + part.call_id + (part.complete ? ">" : "!>");
  if (e.finish)
    text += " finish " + std::to_string(static_cast<int>(*e.finish)) + " " + e.stop_string + " " +
            std::to_string(e.stop_token);
  return text;
}

} // namespace

std::string difference(const std::vector<actors::event>& is,
                       const std::vector<actors::event>& expected, std::int32_t n_choices) {
  // Events of different choices may come in any order.
  for (std::int32_t choice = 0; choice < n_choices; ++choice) {
    const auto of_choice = [choice](const std::vector<actors::event>& events) {
      std::vector<std::string> texts;
      for (const auto& e : events)
        if (e.choice == choice) texts.push_back(written(e));
      return texts;
    };
    const auto a = of_choice(is), b = of_choice(expected);
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const std::string got = i < a.size() ? a[i] : "nothing";
      const std::string wanted = i < b.size() ? b[i] : "nothing";
      if (got != wanted)
        return "choice " + std::to_string(choice) + " has as event " + std::to_string(i) + "\n  " +
               got + "\nand expected is\n  " + wanted;
    }
  }
  if (is.empty() || expected.empty()) return is.size() == expected.size() ? "" : "no event";
  const auto &a = is.back().use, &b = expected.back().use;
  if (a.prompt_tokens != b.prompt_tokens || a.completion_tokens != b.completion_tokens)
    return "the usage is " + std::to_string(a.prompt_tokens) + " and " +
           std::to_string(a.completion_tokens) + " tokens, expected " +
           std::to_string(b.prompt_tokens) + " and " + std::to_string(b.completion_tokens);
  if (a.cached_tokens < 0 || a.cached_tokens > a.prompt_tokens)
    return "of " + std::to_string(a.prompt_tokens) + " prompt tokens " +
           std::to_string(a.cached_tokens) + " were cached";
  return "";
}

} // namespace twill::test
