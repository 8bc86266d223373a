// endpoint: where the server is, taken from --base-url. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace twill::bench {

struct endpoint {
  std::string host;
  std::string port = "80";
  bool tls = false;   ///< https or wss
  std::string prefix; ///< path before every target, without a slash at its end

  std::string authority() const; ///< host:port, as the Host field wants it
};

/// "http://host:port/prefix", the same with https, ws or wss, or "host:port"; throws
/// std::invalid_argument.
endpoint parse_base_url(std::string_view url);

} // namespace twill::bench
