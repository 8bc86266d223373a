// Records all events of a request. If a run of the request ended after its first `n` events,
// helpers compute the output that these events report, and the output that a later run must add.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/actors/engine_fixture.hpp"

namespace scripted {

/// Keeps the events that a recorder gets.
class kept_events {
public:
  actors::event_callback callback() {
    return [kept = kept_, record = recorder_.callback()](actors::event e) {
      {
        const std::lock_guard lock(kept->mutex);
        kept->events.push_back(e);
      }
      record(std::move(e));
    };
  }
  recorder& recorded() { return recorder_; }
  std::vector<actors::event> all() const {
    const std::lock_guard lock(kept_->mutex);
    return kept_->events;
  }

private:
  struct state {
    std::mutex mutex;
    std::vector<actors::event> events;
  };
  std::shared_ptr<state> kept_ = std::make_shared<state>();
  recorder recorder_;
};

/// Adds what the first `n` events report to the output that was made before them.
inline void add_made(std::vector<actors::made_choice>& made,
                     const std::vector<actors::event>& events, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    auto& of = made[static_cast<std::size_t>(events[i].choice)];
    for (const auto& token : events[i].tokens)
      of.tokens.push_back(token.chosen.id);
    of.finished = of.finished || events[i].finish.has_value();
  }
}

inline std::vector<actors::made_choice> made_by(const std::vector<actors::event>& events,
                                                std::size_t n, std::int32_t n_choices) {
  std::vector<actors::made_choice> made(static_cast<std::size_t>(n_choices));
  add_made(made, events, n);
  return made;
}

/// All output that a client receives for each choice, beginning with event number `first`.
inline std::vector<std::string> words_of(const std::vector<actors::event>& events,
                                         std::size_t first, std::int32_t n_choices) {
  std::vector<std::string> words(static_cast<std::size_t>(n_choices));
  const auto received = [](const actors::token_logprob& t) {
    return std::to_string(t.id) + " " + std::to_string(t.logprob) + " ";
  };
  for (std::size_t i = first; i < events.size(); ++i) {
    const auto& e = events[i];
    if (e.started) continue;
    auto& to = words[static_cast<std::size_t>(e.choice)];
    if (e.error) to += "error " + e.error->message;
    for (const auto& token : e.tokens) {
      to += received(token.chosen);
      for (const auto& other : token.top)
        to += received(other);
    }
    to += "\"" + e.text + "\"";
    for (const auto& part : e.parts)
      to += "<" + std::to_string(static_cast<int>(part.kind)) + part.text +
            std::to_string(part.call) + (part.complete ? ">" : "!>");
    if (e.finish)
      to += " finish " + std::to_string(static_cast<int>(*e.finish)) + " " + e.stop_string + " " +
            std::to_string(e.stop_token);
    to += "\n";
  }
  return words;
}

} // namespace scripted
