// server: HTTP/1.1 and WebSocket clients, both on every address that it listens on. A public header
// of net/, beside listeners.hpp.
//
// run() blocks the caller until stop() or until a drain has ended; the other functions may be
// called from any thread, stop() and drain() also more than once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "config/base/read_file.hpp"
#include "config/options.hpp"
#include "net/listeners.hpp"

namespace twill::net {

class tracer;

/// Sockets that listen already.
struct server_listeners {
  listeners clients;
  listeners admin = {}; ///< of `server.admin_listen`
  listeners agent = {}; ///< of `server.agent_listen`
};

class server {
public:
  /// Binds at once; throws std::runtime_error naming the address or the TLS file when that fails.
  static std::unique_ptr<server> bind(const config::options& options, actors::engine_port& engine);
  /// As above, with sockets that listen already; `read` reads the TLS files.
  static std::unique_ptr<server> start(const config::options& options, actors::engine_port& engine,
                                       server_listeners sockets, const file_reader& read);
  virtual ~server() = default;

  /// The addresses in the order of `server.listen`.
  virtual std::vector<std::string> addresses() const = 0;
  /// The port of the first TCP address; 0 when there is none.
  virtual std::uint16_t port() const = 0;
  /// That of `server.admin_listen`; empty when there is none.
  virtual std::string admin_address() const = 0;
  /// That of `server.agent_listen`; empty when there is none.
  virtual std::string agent_address() const = 0;

  virtual void run() = 0;
  /// Readiness goes first, new requests are refused, streams may end within the drain time-out, the
  /// rest get an error frame; then run() returns.
  virtual void drain() = 0;
  /// Closes everything now.
  virtual void stop() = 0;
  /// Reads the TLS files anew. Empty when the new pair is in force for new connections (or there is
  /// no TLS), else why it is not; the old one then stays.
  virtual std::string reload_certificate(const file_reader& read) = 0;
  /// Takes over what may change while the server runs: keys, tenants, limits, foreign pages, hosts
  /// and the drain time-out. Requests under way go on as they began; open WebSockets whose key is
  /// gone start nothing new.
  virtual void reload(const config::options& options) = 0;
  /// What `POST /admin/reload` does: see server_context::reload. Before run().
  virtual void on_reload(std::function<std::pair<bool, std::string>()> work) = 0;
  /// Every request is traced by `traces`, which must outlive the server. Before run().
  virtual void trace_with(tracer& traces) = 0;
};

} // namespace twill::net
