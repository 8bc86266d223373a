// server: serves HTTP/1.1 and WebSocket clients, both on every address that it listens on. A public
// header of net/, like listeners.hpp.
//
// run() blocks its caller until stop() is called or a drain has ended. The other functions may be
// called from any thread; stop() and drain() may be called more than once.
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

/// Sockets that are already listening.
struct server_listeners {
  listeners clients;
  listeners admin = {}; ///< the listeners of `server.admin_listen`
  listeners agent = {}; ///< the listeners of `server.agent_listen`
};

class server {
public:
  /// Binds at once. Throws std::runtime_error that names the address or the TLS file when binding
  /// or reading fails.
  static std::unique_ptr<server> bind(const config::options& options, actors::engine_port& engine);
  /// Like bind(), but with sockets that are already listening; `read` reads the TLS files.
  static std::unique_ptr<server> start(const config::options& options, actors::engine_port& engine,
                                       server_listeners sockets, const file_reader& read);
  virtual ~server() = default;

  /// The addresses of the client listeners, in the order of `server.listen`.
  virtual std::vector<std::string> addresses() const = 0;
  /// The port of the first TCP address; 0 when there is none.
  virtual std::uint16_t port() const = 0;
  /// The address of `server.admin_listen`; empty when there is none.
  virtual std::string admin_address() const = 0;
  /// The address of `server.agent_listen`; empty when there is none.
  virtual std::string agent_address() const = 0;

  virtual void run() = 0;
  /// Starts a drain: the server reports that it is not ready and refuses new requests. Running
  /// streams may end within the drain time-out; the remaining streams then get an error frame, and
  /// run() returns.
  virtual void drain() = 0;
  /// Closes all connections at once.
  virtual void stop() = 0;
  /// Reads the TLS files again. Returns an empty string when new connections use the new
  /// certificate and key, or when TLS is not configured. Otherwise returns the reason for the
  /// failure, and the old pair stays in use.
  virtual std::string reload_certificate(const file_reader& read) = 0;
  /// Applies the options that may change while the server runs: keys, tenants, limits, CORS
  /// origins, hosts and the drain time-out. Running requests continue under the old options. An
  /// open WebSocket whose key was removed may not start new requests.
  virtual void reload(const config::options& options) = 0;
  /// Sets the function that `POST /admin/reload` calls; see server_context::reload. Call
  /// on_reload() before run().
  virtual void on_reload(std::function<std::pair<bool, std::string>()> work) = 0;
  /// Makes `traces` trace every request; `traces` must outlive the server. Call trace_with() before
  /// run().
  virtual void trace_with(tracer& traces) = 0;
};

} // namespace twill::net
