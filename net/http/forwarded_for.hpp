// forwarded_for: whom a request comes from, when proxies passed it on (X-Forwarded-For). Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "config/base/ip_network.hpp"

namespace twill::net {

/// The addresses and networks of `server.trusted_proxies`; "unix" stands for every Unix socket.
class trusted_proxies {
public:
  explicit trusted_proxies(const std::vector<std::string>& configured);
  /// `peer` empty: a Unix socket.
  bool trusts(const std::optional<ip_address>& peer) const;

private:
  std::vector<ip_network> networks_;
  bool unix_sockets_ = false;
};

struct forwarded_client {
  bool malformed = false;
  std::optional<ip_address> client; ///< empty: the header names none
};

/// The rightmost address that is no trusted proxy: what stands left of it, the client may have made
/// up. The leftmost, when all are trusted. `list`: all lines of the header, joined by commas.
forwarded_client find_forwarded_client(std::string_view list, const trusted_proxies& trusted);

} // namespace twill::net
