// forwarded_for: finds the client of a request that proxies forwarded (X-Forwarded-For). The
// functions are pure.
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
  /// True if `peer` is a trusted proxy. An empty `peer` stands for a Unix socket.
  bool trusts(const std::optional<ip_address>& peer) const;

private:
  std::vector<ip_network> networks_;
  bool unix_sockets_ = false;
};

struct forwarded_client {
  bool malformed = false;
  std::optional<ip_address> client; ///< empty: the header contains no address
};

/// Returns the rightmost address that is not a trusted proxy, because the client may have made up
/// everything left of that address. If all addresses are trusted proxies, returns the leftmost.
/// `list` is all lines of the header, joined by commas.
forwarded_client find_forwarded_client(std::string_view list, const trusted_proxies& trusted);

} // namespace twill::net
