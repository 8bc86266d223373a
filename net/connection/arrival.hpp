// arrival: prepares a new socket for its first request. It reads the PROXY protocol header, in
// which a proxy names the client, if the listener requires the header, and then does the TLS
// handshake if there is TLS. Both must be complete within `server.header_timeout`; then the HTTP
// session begins.
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
  bool proxy_header = false; ///< the first bytes of the socket are a PROXY protocol header
  tls_context tls;           ///< null if the connection has no TLS
};

/// Must be called on the socket's strand.
void receive_client(arriving_client client, server_context& context);

} // namespace twill::net
