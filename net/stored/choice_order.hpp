// choice_order: brings the events of a request of several choices into an order that follows from
// their tokens alone.
//
// The engine gives an event for each token as steps come, so that the order among choices depends
// on what else ran. Here the choices that are not over take turns, one event each: a run that goes
// on after a restart gives its events the numbers that they would have had. Choices of a request
// are in the same steps, so that hardly anything waits. Pure; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::net {

class choice_order {
public:
  explicit choice_order(std::int32_t n_choices);

  /// An event that an earlier run has put in its place.
  void pass(const actors::event& ev);
  /// Takes an event of the engine, and appends what has its turn now: `last` belongs to the last
  /// event of all choices, and `use` counts the tokens up to the event. What belongs to no choice,
  /// such as an error, comes at once.
  void add(actors::event&& ev, std::vector<actors::event>& out);

private:
  struct choice {
    std::deque<actors::event> waiting;
    bool over = false;
  };

  static bool is_of_choice(const actors::event& ev);
  void note(const actors::event& ev);
  void end_turn();

  std::vector<choice> choices_;
  std::size_t turn_ = 0; ///< the choice whose event is next
  std::size_t n_over_ = 0;
  std::int32_t n_tokens_ = 0; ///< of all events so far
};

} // namespace twill::net
