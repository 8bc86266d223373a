// engine_requests: the engine requests of one socket and the stored ones that it follows, and the
// bridge from engine threads to its strand.
//
// Threads: everything but the engine's callbacks runs on the session's strand. A callback puts its
// event into the inbox (one mutex, one move) and, when that was empty, calls `wake`, which posts to
// the strand. So however many events arrive while the strand is busy, it is woken once. Invariants:
// after cancel() or `last` no event of that key is handed out. After close() no engine thread
// touches `wake` any more. The destructor cancels what still runs.
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
  /// A request is paused while any of these reasons holds.
  enum pause_reason : unsigned { slow_socket = 1, no_credit = 2 };

  engine_requests(actors::engine_port& engine, std::function<void()> wake);
  ~engine_requests();
  engine_requests(const engine_requests&) = delete;
  engine_requests& operator=(const engine_requests&) = delete;

  /// Names the client, whose requests share one turn in the engine. Until then each socket is a
  /// client of its own; an API key names its requests' client in any case.
  void set_client(std::string name) { client_ = std::move(name); }
  const std::string& client() const noexcept { return client_; }

  /// Of requests for hidden states so many are in the engine at once, and others wait here for
  /// their turn, so that a body with thousands of inputs does not fill the engine's queue.
  static constexpr std::size_t most_pooled = 64;

  key start(actors::request request);
  /// Follows a source instead of a request of its own. cancel() leaves it.
  key follow(std::shared_ptr<event_source> from);
  void cancel(key which);
  /// Ends a request by its client's word. True: its end comes as an event, since others may follow
  /// what it follows. False: it is cancelled.
  bool end(key which);
  void cancel_all();
  void pause(key which, pause_reason why);
  void resume(key which, pause_reason why);
  /// Pauses and resumes all requests, including those that are started later.
  void pause_all();
  void resume_all();
  /// The events that have arrived since the last call, in order per request. A request is forgotten
  /// with its `last` event.
  std::vector<std::pair<key, actors::event>> take_events();
  bool running(key which) const { return requests_.contains(which); }
  std::size_t size() const noexcept { return requests_.size(); }
  /// Cancels all requests; `wake` is not called any more.
  void close();

private:
  struct inbox;
  struct entry {
    actors::request_id id = 0;
    std::shared_ptr<event_source> source; ///< null: a request of the engine
    unsigned paused = 0;
    bool pooled = false;                    ///< it wants hidden states
    std::unique_ptr<actors::request> waits; ///< for its turn; null: the engine has it
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
  std::deque<key> line_;     ///< those that wait, and some that were cancelled meanwhile
  std::size_t n_pooled_ = 0; ///< of those in the engine
  key last_key_ = 0;
  bool socket_slow_ = false;
};

} // namespace twill::net
