// heard: records all events that a client gets of one request. If a run of the request was cut off,
// the request continues in a later run, and the events of all runs are joined.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::test {

class heard {
public:
  /// The callback for a new run. Events of earlier runs are ignored from now on.
  actors::event_callback next_run();
  /// Events of the run are ignored from now on.
  void stop();

  std::size_t n_events() const;
  bool run_is_over() const; ///< whether its last event was received
  /// The error that ended the run.
  std::optional<actors::request_error> error() const;
  /// All events, without errors that ended runs and without the first events of later runs.
  std::vector<actors::event> events() const;
  std::string broken() const; ///< a rule of events that was broken, or nothing

private:
  void hear(std::size_t run, actors::event e);

  mutable std::mutex mutex_;
  std::vector<actors::event> events_;
  std::size_t run_ = 0;
  bool started_ = false, begun_ = false, over_ = false;
  std::optional<actors::request_error> error_;
  std::string broken_;
};

/// The first difference of two lists of events, or nothing. Reused prompt tokens may differ.
std::string difference(const std::vector<actors::event>& is,
                       const std::vector<actors::event>& expected, std::int32_t n_choices);

} // namespace twill::test
