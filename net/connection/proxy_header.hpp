// proxy_header: parses the header that a proxy sends at the start of a connection to name the
// client (PROXY protocol, versions 1 and 2). The functions are pure.
//
// The parser never requests more bytes than the header is certain to contain, so that none of the
// bytes which follow the header are read.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "config/base/ip_network.hpp"

namespace twill::net {

struct proxy_header {
  enum class state { need_more, done, malformed };
  state now = state::need_more;
  std::size_t missing = 0; ///< if `need_more`: how many bytes may be read next
  /// If `done`: the client's address. It is empty when the proxy connects on its own behalf or
  /// names no IP address.
  std::optional<ip_address> client;
};

/// `bytes` is everything that has been read so far. If `bytes` is empty, the result says how many
/// bytes to read first.
proxy_header read_proxy_header(std::string_view bytes);

} // namespace twill::net
