// proxy_header: the first bytes of a connection that a proxy passes on (PROXY protocol, versions 1
// and 2): they name the client. Pure.
//
// The reader asks for as many bytes as cannot belong to what follows the header, so that nothing of
// the client's own bytes is taken.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "config/base/ip_network.hpp"

namespace twill::net {

struct proxy_header {
  enum class state { need_more, done, malformed };
  state now = state::need_more;
  std::size_t missing = 0; ///< need_more: so many bytes may be read next
  /// done: the client; empty when the proxy speaks for itself or names no IP address.
  std::optional<ip_address> client;
};

/// `bytes`: all that was read so far. Asked with nothing, it tells how many bytes to begin with.
proxy_header read_proxy_header(std::string_view bytes);

} // namespace twill::net
