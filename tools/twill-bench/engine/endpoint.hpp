// endpoint: the address of the server, parsed from --base-url. The functions are pure.
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

  std::string authority() const; ///< host:port, in the form of the Host header field
};

/// Parses "http://host:port/prefix", such a URL with https, ws or wss, or "host:port". Throws
/// std::invalid_argument for anything else.
endpoint parse_base_url(std::string_view url);

} // namespace twill::bench
