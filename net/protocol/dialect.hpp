// dialect: the protocol spoken over one WebSocket, without the socket. On the session's strand.
//
// The session hands messages and engine events in and takes frames out when its writer is free, so
// a dialect may merge events that have gathered meanwhile. It reaches the engine through its host.
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
  /// As start(), of a request that is to be stored under this head.
  virtual result<engine_requests::key> start_stored(stored_head head, actors::request request) = 0;
  /// Looks for a stored response of this tenant, which may have to be read from a file: `then` is
  /// called on the strand, at once or later, unless the session is gone.
  using found_stored = std::function<void(result<std::optional<followed_response>>)>;
  virtual void find_stored(const std::string& id, const std::string& tenant, found_stored then) = 0;
  virtual engine_requests::key follow(std::shared_ptr<event_source> source) = 0;
  virtual void cancel(engine_requests::key which) = 0;
  /// As engine_requests::end().
  virtual bool end(engine_requests::key which) = 0;
  virtual void pause(engine_requests::key which) = 0; ///< the client's credit is used up
  virtual void resume(engine_requests::key which) = 0;
  /// The output of all sockets together is too much: nothing new may start.
  virtual bool output_full() const = 0;
  /// Has the session ask for a frame soon. Any thread may call it, also once the session is gone.
  virtual std::function<void()> waker() = 0;
};

class dialect {
public:
  virtual ~dialect() = default;
  virtual void on_message(std::string_view text) = 0;
  virtual void on_event(engine_requests::key from, actors::event&& ev) = 0;
  /// A fault of the socket itself: queues an error frame.
  virtual void on_error(const api_error& error) = 0;
  /// Takes the next frame; false when none waits.
  virtual bool next_frame(std::string& out) = 0;
  virtual std::size_t waiting_bytes() const = 0;
  /// Nothing runs and nothing waits to run or to be sent.
  virtual bool idle() const = 0;
};

/// What every dialect is given of its connection.
struct dialect_scope {
  dialect_host& host;
  const actors::engine_port& engine;
  const config::options& options;
  const current_settings& current;
  response_store& responses;
  const find_response& find_previous;
  api_keys::holder holder;
  std::string client_id;       ///< the handshake's X-Request-Id
  std::uint64_t socket_id = 0; ///< names this socket among all that are open
  monitor* watched = nullptr;  ///< the server's figures; set where administrators come in
};

/// Opens a dialect; the endpoint table names one per WebSocket path.
using dialect_opener = std::unique_ptr<dialect> (*)(dialect_scope scope);

} // namespace twill::net
