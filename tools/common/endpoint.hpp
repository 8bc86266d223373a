// endpoint: where a daemon listens, from the address a user types.
#pragma once

#include <stdexcept>
#include <string>

namespace twill::tools {

/// What a client command reports in one line; main() catches it once.
class client_error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct endpoint {
  std::string host; ///< without brackets; of a Unix socket "localhost"
  std::string port;
  std::string unix_path; ///< empty: TCP
  bool tls = false;
  std::string prefix;  ///< path before /v1, without a slash at its end
  std::string api_key; ///< empty: none
  std::string
      authorities; ///< PEM file of those whose certificates are trusted; empty: the system's

  std::string authority() const; ///< "host:port" as the Host field wants it
  std::string url() const;       ///< as messages name it
};

/// Reads "http://host:port/prefix", "ws://host:port" (https and wss alike), "host:port" or
/// "unix:/path"; throws client_error.
endpoint parse_endpoint(const std::string& url, std::string api_key = {},
                        std::string authorities = {});

} // namespace twill::tools
