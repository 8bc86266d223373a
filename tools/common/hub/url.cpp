#include "tools/common/hub/url.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace twill::tools::hub {
namespace {

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_port(std::string_view text) {
  unsigned number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size() && number > 0 && number < 65536;
}

/// Parses "host", "host:port" or "[::1]:port" into `to`, whose port is already set to the scheme's
/// default.
bool read_authority(std::string_view text, url& to) {
  if (text.find('@') != text.npos) return false;
  std::string_view rest;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == text.npos) return false;
    to.host = lower(text.substr(1, close - 1));
    rest = text.substr(close + 1);
  } else {
    const auto colon = std::min(text.find(':'), text.size());
    to.host = lower(text.substr(0, colon));
    rest = text.substr(colon);
  }
  if (to.host.empty()) return false;
  if (rest.empty()) return true;
  if (!rest.starts_with(':') || !is_port(rest.substr(1))) return false;
  to.port = rest.substr(1);
  return true;
}

} // namespace

std::string url::authority() const {
  const bool is_ip6 = host.find(':') != host.npos;
  const std::string name = is_ip6 ? "[" + host + "]" : host;
  return port == (tls ? "443" : "80") ? name : name + ":" + port;
}

std::string url::origin() const {
  return (tls ? "https://" : "http://") + authority();
}

std::optional<url> parse_url(std::string_view text) {
  const auto scheme_end = text.find("://");
  if (scheme_end == text.npos || !is_printable(text)) return std::nullopt;
  const auto scheme = lower(text.substr(0, scheme_end));
  if (scheme != "http" && scheme != "https") return std::nullopt;
  url parsed;
  parsed.tls = scheme == "https";
  parsed.port = parsed.tls ? "443" : "80";
  std::string_view rest = text.substr(scheme_end + 3);
  rest = rest.substr(0, rest.find('#'));
  const auto end = std::min(rest.find_first_of("/?"), rest.size());
  if (!read_authority(rest.substr(0, end), parsed)) return std::nullopt;
  parsed.target = rest.substr(end);
  if (!parsed.target.starts_with('/')) parsed.target.insert(0, 1, '/');
  return parsed;
}

std::optional<url> resolve(const url& base, std::string_view location) {
  if (location.empty() || !is_printable(location)) return std::nullopt;
  if (location.starts_with("//"))
    return parse_url((base.tls ? "https:" : "http:") + std::string(location));
  const auto colon = location.find(':');
  if (colon != location.npos && colon < location.find_first_of("/?#")) return parse_url(location);
  if (location.starts_with('/')) return parse_url(base.origin() + std::string(location));
  const auto path = base.target.substr(0, base.target.find('?'));
  return parse_url(base.origin() + path.substr(0, path.rfind('/') + 1) + std::string(location));
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 0x80 && std::isalnum(byte) != 0) ||
                       std::string_view("-_.~").find(c) != std::string_view::npos ||
                       (c == '/' && keep_slashes);
    if (plain) {
      out += c;
      continue;
    }
    out += '%';
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto [end, fault] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || fault != std::errc() || end != digits.data() + 2) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

} // namespace twill::tools::hub
