// A TLS handshake in memory, between a server's context and a client that the function creates.
#pragma once

#include <string>
#include <vector>

#include "net/connection/tls_credentials.hpp"

namespace twill::testing {

struct handshake {
  std::string fault;              ///< empty if the handshake succeeded
  std::vector<std::string> shown; ///< the certificates that the server sent, in its order, as PEM
};

/// The client trusts the certificate `root` alone; without one it trusts anybody.
handshake shake_hands(const net::tls_context& server, const std::string& root);
/// The certificates that a client's context trusts, as PEM.
std::vector<std::string> authorities_of(const net::tls_context& client);

} // namespace twill::testing
