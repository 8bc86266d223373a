// choice_order: brings the events of a request of several choices into an order that follows from
// their tokens alone.
//
// The engine gives an event for each token as steps come, so that the order among choices depends
// on what else runs: on limits, preemption and restarts. Readers get them in turns instead: the
// choices that are not over have one event each. So an event has the same number each time. Where
// choices do not run together, readers wait for the one that is behind. Pure; one thread at a time.
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

  /// Takes the next event in the engine's order, and the index of its record; appends to `out` the
  /// indices of the records whose turn it is now. An event that belongs to no choice has its turn
  /// at once, and an error after all events that still wait.
  void add(const actors::event& ev, std::size_t place, std::deque<std::size_t>& out);
  /// Called with the event of each of those indices, in their order: sets `last` on the last event
  /// of all choices alone, and `use.completion_tokens` to the number of tokens up to the event.
  void adjust(actors::event& ev);

private:
  struct waiting_event {
    std::size_t place = 0;
    bool finishes = false;
  };
  struct choice {
    std::deque<waiting_event> waiting;
    bool over = false;
  };

  static bool is_of_choice(const actors::event& ev);
  void end_turn();
  void give_up_turns(std::deque<std::size_t>& out);

  std::vector<choice> choices_;
  std::size_t turn_ = 0; ///< the choice whose event is next
  std::size_t n_over_ = 0;
  std::size_t n_finished_ = 0; ///< of those that adjust() has seen
  std::int32_t n_tokens_ = 0;  ///< so
};

} // namespace twill::net
