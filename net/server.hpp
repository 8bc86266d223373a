// server: the listener of HTTP/1.1 and WebSocket clients, both on one port. The public header of
// net/.
//
// run() blocks the caller until stop() or until a drain has ended; the other functions may be
// called from any thread, stop() and drain() also more than once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/port/engine_port.hpp"
#include "config/options.hpp"

namespace twill::net {

class server {
public:
  /// Binds at once; throws std::runtime_error naming the address when that fails.
  static std::unique_ptr<server> bind(const config::options& options, actors::engine_port& engine);
  virtual ~server() = default;

  virtual std::string host() const = 0;
  virtual std::uint16_t port() const = 0;

  virtual void run() = 0;
  /// Readiness goes first, new requests are refused, streams may end within the drain time-out, the
  /// rest get an error frame; then run() returns.
  virtual void drain() = 0;
  /// Closes everything now.
  virtual void stop() = 0;
};

} // namespace twill::net
