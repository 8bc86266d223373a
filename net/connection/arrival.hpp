// arrival: what happens on a new socket before its first request: a proxy names the client (PROXY
// protocol), TLS shakes hands. All of it within `server.header_timeout`; then a session begins.
#pragma once

#include <memory>
#include <optional>

#include "config/base/ip_network.hpp"
#include "net/connection/client_origin.hpp"
#include "net/connection/client_stream.hpp"
#include "net/connection/open_sockets.hpp"
#include "net/connection/tls_credentials.hpp"
#include "net/server_context.hpp"

namespace twill::net {

struct arriving_client {
  client_socket socket;
  open_sockets::slot slot;
  client_origin origin;
  bool proxy_header = false; ///< a header of the PROXY protocol comes first
  tls_context tls;           ///< empty: no TLS
};

/// On the socket's strand.
void receive_client(arriving_client client, server_context& context);

} // namespace twill::net
