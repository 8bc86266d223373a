// dialect: the message protocol of one WebSocket connection, without the socket. Used only on the
// strand of the connection's session.
//
// The session passes incoming messages and engine events to the dialect, and takes outgoing frames
// from the dialect whenever its writer is idle. A dialect may therefore merge events that arrive
// while the writer is busy. A dialect starts and cancels engine requests through its dialect_host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "config/options.hpp"
#include "net/api_error.hpp"
#include "net/connection/engine_requests.hpp"
#include "net/protocol/codec.hpp"
#include "net/settings.hpp"

namespace twill::net {

class monitor;
class response_store;

class dialect_host {
public:
  virtual ~dialect_host() = default;
  virtual engine_requests::key start(actors::request request) = 0;
  /// Starts a request like start(), and stores its output as the response described by `head`.
  virtual result<engine_requests::key> start_stored(stored_head head, actors::request request) = 0;
  /// Receives the result of find_stored(): the stored response, nothing if there is none, or an
  /// error.
  using found_stored = std::function<void(result<std::optional<followed_response>>)>;
  /// Looks for a stored response of this tenant, which may have to be read from a file. `then` is
  /// called on the strand, before find_stored() returns or later; it is not called if the session
  /// has closed meanwhile.
  virtual void find_stored(const std::string& id, const std::string& tenant, found_stored then) = 0;
  virtual engine_requests::key follow(std::shared_ptr<event_source> source) = 0;
  virtual void cancel(engine_requests::key which) = 0;
  /// See engine_requests::end().
  virtual bool end(engine_requests::key which) = 0;
  /// Called when the client's credit is used up.
  virtual void pause(engine_requests::key which) = 0;
  virtual void resume(engine_requests::key which) = 0;
  /// True if all sockets together hold too much unsent output, so that nothing new may start.
  virtual bool output_full() const = 0;
  /// Returns a callback which makes the session ask next_frame() for a frame soon. Any thread may
  /// call the callback, also after the session is gone.
  virtual std::function<void()> waker() = 0;
};

class dialect {
public:
  virtual ~dialect() = default;
  virtual void on_message(std::string_view text) = 0;
  virtual void on_event(engine_requests::key from, actors::event&& ev) = 0;
  /// Reports an error of the socket itself, not of a request: queues an error frame.
  virtual void on_error(const api_error& error) = 0;
  /// Moves the next frame to `out`; returns false if there is none.
  virtual bool next_frame(std::string& out) = 0;
  virtual std::size_t waiting_bytes() const = 0;
  /// True if no request runs or waits to run and no frame waits to be sent.
  virtual bool idle() const = 0;
};

/// The parts of its connection and of the server that a dialect may use.
struct dialect_scope {
  dialect_host& host;
  const actors::engine_port& engine;
  const config::options& options;
  const current_settings& current;
  response_store& responses;
  const find_response& find_previous;
  api_keys::holder holder;
  std::string client_id;       ///< the X-Request-Id header of the WebSocket handshake
  std::uint64_t socket_id = 0; ///< unique among the sockets that are open
  monitor* watched = nullptr;  ///< samples the metrics that administrators see
};

/// Creates the dialect of a new connection; the endpoint table names one opener per WebSocket path.
using dialect_opener = std::unique_ptr<dialect> (*)(dialect_scope scope);

} // namespace twill::net
