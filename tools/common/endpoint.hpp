// endpoint: parses the address of a daemon that a user types.
#pragma once

#include <stdexcept>
#include <string>

namespace twill::tools {

/// An error that a client command reports in one line; main() catches it.
class client_error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct endpoint {
  std::string host; ///< no brackets around an IPv6 address; "localhost" for a Unix socket
  std::string port;
  std::string unix_path; ///< empty for TCP
  bool tls = false;
  std::string prefix;  ///< the path before /v1, without a trailing slash
  std::string api_key; ///< empty: no key is sent
  std::string
      authorities; ///< PEM file of the trusted certificate authorities; empty: those of the system

  std::string authority() const; ///< "host:port", as the HTTP field Host needs it
  std::string url() const;       ///< the address as error messages show it
};

/// Parses "http://host:port/prefix", "ws://host:port" (also with https and wss), "host:port" or
/// "unix:/path". Throws client_error for anything else.
endpoint parse_endpoint(const std::string& url, std::string api_key = {},
                        std::string authorities = {});

} // namespace twill::tools
