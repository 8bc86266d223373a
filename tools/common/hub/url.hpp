// url: parses http and https addresses and resolves redirects. The functions are pure; any thread
// may call them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::tools::hub {

struct url {
  bool tls = false;
  std::string host; ///< an IPv6 address has no brackets here
  std::string port;
  std::string target; ///< path and query; begins with '/'

  std::string authority() const; ///< "host" or "host:port", as the HTTP field Host needs it
  std::string origin() const;    ///< "https://host"
  std::string text() const { return origin() + target; }
  bool has_origin_of(const url& other) const {
    return tls == other.tls && host == other.host && port == other.port;
  }
};

/// Parses an http or https address. Returns nothing for other schemes, for addresses with a user
/// name or without a host, and for those with spaces or control characters. The part from '#' on is
/// dropped; the host is converted to lower case.
std::optional<url> parse_url(std::string_view text);

/// Resolves a Location field against `base`. The field may be an absolute address, "//host/path",
/// "/path" or "path".
std::optional<url> resolve(const url& base, std::string_view location);

/// Percent-encodes all bytes except letters, digits, '-', '_', '.' and '~'; with `keep_slashes`
/// also '/' is left as it is.
std::string percent_encoded(std::string_view text, bool keep_slashes);
/// Returns nothing when a '%' is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

} // namespace twill::tools::hub
