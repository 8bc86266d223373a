// client_origin: where a socket's client is, for limits and logs. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/base/ip_network.hpp"

namespace twill::net {

/// Which listener a client came in by.
enum class listener_kind : std::uint8_t {
  clients,       ///< one of `server.listen`
  admin_socket,  ///< `server.admin_listen`, a Unix socket: the file's mode says who may
  admin_address, ///< `server.admin_listen`, an address: each request needs an administrator's key
};

struct client_origin {
  std::optional<ip_address> address; ///< empty: a Unix socket
  bool trusted_proxy = false;        ///< its X-Forwarded-For is believed
  listener_kind listener = listener_kind::clients;

  /// As log lines name it.
  std::string text() const { return address.has_value() ? address->text() : "a Unix socket"; }
};

/// Whom a socket is counted for: an IPv4 address or an IPv6 /64; empty: counted only over all.
/// `limit`: `server.max_per_address`.
inline std::string counted_as(const client_origin& origin, int limit) {
  if (!origin.address.has_value()) return {};
  if (limit < 0 && origin.address->is_loopback()) return {};
  if (origin.address->is_v4()) return origin.address->text();
  const auto& bytes = origin.address->as_v6();
  return std::string(bytes.begin(), bytes.begin() + 8);
}

} // namespace twill::net
