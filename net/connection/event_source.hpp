// event_source: what gives the events of one key besides the engine itself, such as a stored
// response that one of its readers follows.
//
// Threads: all calls come from the strand of the session that follows, one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "actors/port/engine_port.hpp"

namespace twill::net {

/// An event that says no more than that its source has begun, or with `last` that it has ended.
inline bool says_nothing(const actors::event& ev) {
  return !ev.started && ev.tokens.empty() && ev.parts.empty() && ev.text.empty() &&
         !ev.finish.has_value() && !ev.error.has_value();
}

class event_source {
public:
  virtual ~event_source() = default;
  /// Called once, before all others but pause() and resume(). `deliver` is called on any thread,
  /// one event at a time and in order, until `last`; it may still be called while leave() runs.
  /// `client` is who shares a turn in the engine, where this starts a request.
  virtual void start(actors::event_callback deliver, const std::string& client) = 0;
  /// Nobody takes the events any more.
  virtual void leave() = 0;
  /// What the events are of shall end, whoever else takes them; its end comes as an event.
  virtual void end() = 0;
  /// No events are delivered from pause() to resume(); none is lost.
  virtual void pause() = 0;
  virtual void resume() = 0;
  /// The session has taken so many events: as many more may come.
  virtual void taken(std::size_t n) = 0;
};

struct stored_head;

/// A stored response, and what gives its events from the first on.
struct followed_response {
  std::shared_ptr<const stored_head> head;
  std::shared_ptr<event_source> source;
};

} // namespace twill::net
