// client_origin: the address and the listener that a client's socket came from, used for limits and
// logs. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/base/ip_network.hpp"

namespace twill::net {

/// The listener that accepted a client's socket.
enum class listener_kind : std::uint8_t {
  clients, ///< one of `server.listen`
  /// `server.admin_listen` as a Unix socket: the mode of the socket's file decides who may connect
  admin_socket,
  /// `server.admin_listen` as a network address: each request needs an administrator's key
  admin_address,
};

struct client_origin {
  std::optional<ip_address> address; ///< empty if the client came by a Unix socket
  /// The client is a trusted proxy, so its X-Forwarded-For header is believed.
  bool trusted_proxy = false;
  listener_kind listener = listener_kind::clients;

  /// The client's address as log lines show it.
  std::string text() const { return address.has_value() ? address->text() : "a Unix socket"; }
};

/// Returns the key under which a client's sockets are counted for its limit per address: its IPv4
/// address, or the first 8 bytes of its IPv6 address (the /64 network). An empty string means that
/// the socket counts only towards the total. `limit` is `server.max_per_address`; if `limit` is
/// negative, sockets from a loopback address count only towards the total.
inline std::string counted_as(const client_origin& origin, int limit) {
  if (!origin.address.has_value()) return {};
  if (limit < 0 && origin.address->is_loopback()) return {};
  if (origin.address->is_v4()) return origin.address->text();
  const auto& bytes = origin.address->as_v6();
  return std::string(bytes.begin(), bytes.begin() + 8);
}

} // namespace twill::net
