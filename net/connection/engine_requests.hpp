// engine_requests: all requests that one socket has running in the engine, and all stored responses
// (OpenAI's `store`, see net/stored) whose events the socket gets. It passes their events from the
// engine's threads to the socket's strand.
//
// Threads: all functions must be called on the session's strand. The engine's callbacks run on
// engine threads: a callback moves its event into the inbox under one mutex and, if the inbox was
// empty, calls `wake`, which must post to the strand. Therefore the strand is woken only once,
// however many events arrive while it is busy.
// Invariants: after cancel() or an event with `last`, take_events() returns no event of that
// request. After close(), no engine thread calls `wake`. The destructor cancels all requests that
// still run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/connection/event_source.hpp"

namespace twill::net {

class engine_requests {
public:
  using key = std::uint64_t;
  /// A request is paused as long as at least one of these reasons holds.
  enum pause_reason : unsigned { slow_socket = 1, no_credit = 2 };

  engine_requests(actors::engine_port& engine, std::function<void()> wake);
  ~engine_requests();
  engine_requests(const engine_requests&) = delete;
  engine_requests& operator=(const engine_requests&) = delete;

  /// Sets the name of the client. The engine shares its capacity fairly between clients, however
  /// many requests each client has. Without this call each socket counts as a client of its own. A
  /// request with an API key always counts for the key's client, whatever name is set here.
  void set_client(std::string name) { client_ = std::move(name); }
  const std::string& client() const noexcept { return client_; }

  /// At most this many requests of one socket that ask for hidden states (embeddings) are in the
  /// engine at once. Further requests of this kind wait in this object, so that a body with
  /// thousands of inputs does not fill the engine's queue.
  static constexpr std::size_t most_pooled = 64;

  key start(actors::request request);
  /// Takes events from `from` instead of from a new engine request. cancel() then calls
  /// `from->leave()`.
  key follow(std::shared_ptr<event_source> from);
  void cancel(key which);
  /// Ends a request because its client asked for the end. Returns true for a request that was added
  /// by follow(): its source ends for all readers, and the end arrives as an event. Returns false
  /// for an engine request: the request is cancelled and no further event arrives.
  bool end(key which);
  void cancel_all();
  void pause(key which, pause_reason why);
  void resume(key which, pause_reason why);
  /// Pauses or resumes all requests, and sets the state in which later requests start.
  void pause_all();
  void resume_all();
  /// Returns the events that have arrived since the last call, in order for each request. The
  /// object drops a request when it returns the request's `last` event.
  std::vector<std::pair<key, actors::event>> take_events();
  bool running(key which) const { return requests_.contains(which); }
  std::size_t size() const noexcept { return requests_.size(); }
  /// Cancels all requests. `wake` is not called after this function returns.
  void close();

private:
  struct inbox;
  struct entry {
    actors::request_id id = 0;
    std::shared_ptr<event_source> source; ///< null for a request of the engine
    unsigned paused = 0;                  ///< a set of pause_reason bits
    bool pooled = false;                  ///< the request asks for hidden states
    /// The request while it waits in `line_`; null once it has been submitted to the engine.
    std::unique_ptr<actors::request> waits;
  };

  void set_paused(entry& e, unsigned paused);
  void submit(key of, entry& e, actors::request request);
  void forget(std::unordered_map<key, entry>::iterator which);
  void submit_waiting();
  void leave(const entry& e);

  actors::engine_port& engine_;
  std::string client_;
  std::shared_ptr<inbox> inbox_;
  std::unordered_map<key, entry> requests_;
  /// The keys of the requests that wait to be submitted; some of them may have been cancelled
  /// since.
  std::deque<key> line_;
  std::size_t n_pooled_ = 0; ///< number of submitted requests with `pooled`
  key last_key_ = 0;
  bool socket_slow_ = false;
};

} // namespace twill::net
