// choice_order: orders the events of a request with several choices in a way that depends only on
// the tokens.
//
// The engine sends an event for each token as its steps produce them, so the order between choices
// depends on limits, preemption, restarts and other requests. Readers of a stored response get the
// events in turns instead: each choice that has not ended gives one event per turn. Therefore an
// event has the same number in every reading. If the choices do not run together, readers wait for
// the slowest choice. An object has no side effects outside itself; one thread at a time may use
// it.
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

  /// Takes the next event in the engine's order; `place` is the index of the record (the stored
  /// bytes) of the event. Appends to `out` the indices of the records that may now be delivered. An
  /// event that belongs to no choice is delivered at once, except that an error comes after all
  /// events that still wait.
  void add(const actors::event& ev, std::size_t place, std::deque<std::size_t>& out);
  /// Must be called with each event whose index add() has returned, in the order of these indexes.
  /// Sets `last` only on the last event of all choices, and sets `use.completion_tokens` to the
  /// number of tokens of all choices up to and including this event.
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
  std::size_t turn_ = 0; ///< index of the choice whose event is delivered next
  std::size_t n_over_ = 0;
  std::size_t n_finished_ = 0; ///< number of choices whose last event adjust() has seen
  std::int32_t n_tokens_ = 0;  ///< number of tokens in the events that adjust() has seen
};

} // namespace twill::net
