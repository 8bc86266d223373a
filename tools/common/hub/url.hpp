// url: addresses of http and https, and how a redirect changes one. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::tools::hub {

struct url {
  bool tls = false;
  std::string host; ///< without brackets
  std::string port;
  std::string target; ///< path and query; begins with '/'

  std::string authority() const; ///< "host" or "host:port", as the Host field wants it
  std::string origin() const;    ///< "https://host"
  std::string text() const { return origin() + target; }
  bool has_origin_of(const url& other) const {
    return tls == other.tls && host == other.host && port == other.port;
  }
};

/// Nothing for other schemes, for addresses with a user or without a host, and for those that have
/// spaces or control characters. The part behind '#' is left out; the host becomes lower case.
std::optional<url> parse_url(std::string_view text);

/// Where a Location field leads from `base`: an absolute address, "//host/path", "/path" or "path".
std::optional<url> resolve(const url& base, std::string_view location);

/// Bytes other than letters, digits, '-', '_', '.' and '~' as %XX; '/' stays when `keep_slashes`.
std::string percent_encoded(std::string_view text, bool keep_slashes);
/// Nothing when a '%' has no two hexadecimal digits behind it.
std::optional<std::string> percent_decoded(std::string_view text);

} // namespace twill::tools::hub
