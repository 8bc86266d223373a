// event_source: a source of a request's events other than the engine itself, for example a stored
// response that a client follows.
//
// Threads: all functions are called on the strand of the session that follows the source, one at
// a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "actors/port/engine_port.hpp"

namespace twill::net {

/// Returns whether an event has no content, that is, whether it reports only that the source has
/// begun or, with `last`, that the source has ended.
inline bool says_nothing(const actors::event& ev) {
  return !ev.started && ev.tokens.empty() && ev.parts.empty() && ev.text.empty() &&
         !ev.finish.has_value() && !ev.error.has_value();
}

class event_source {
public:
  virtual ~event_source() = default;
  /// Starts the source. Called once, and before all other functions except pause() and resume().
  /// The source calls `deliver` on any thread, one event at a time and in order, until an event
  /// with `last`; a call may still happen while leave() runs. If the source starts an engine
  /// request, the request counts for the client that `client` names (see
  /// engine_requests::set_client()).
  virtual void start(actors::event_callback deliver, const std::string& client) = 0;
  /// The follower wants no more events.
  virtual void leave() = 0;
  /// Ends the work that produces the events, even if other followers still read them. The end
  /// arrives as an event.
  virtual void end() = 0;
  /// Between pause() and resume() the source delivers no events, but keeps them; none is lost.
  virtual void pause() = 0;
  virtual void resume() = 0;
  /// Reports that the session has processed `n` events, so that the source may deliver `n` more.
  virtual void taken(std::size_t n) = 0;
};

struct stored_head;

/// A stored response, and a source that gives all its events from the first one on.
struct followed_response {
  std::shared_ptr<const stored_head> head;
  std::shared_ptr<event_source> source;
};

} // namespace twill::net
