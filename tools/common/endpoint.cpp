#include "tools/common/endpoint.hpp"

#include <algorithm>

namespace twill::tools {

std::string endpoint::authority() const {
  if (!unix_path.empty()) return host;
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
}

std::string endpoint::url() const {
  if (!unix_path.empty()) return "unix:" + unix_path;
  return (tls ? "https://" : "http://") + authority();
}

endpoint parse_endpoint(const std::string& url, std::string api_key, std::string authorities) {
  const auto refuse = [&](const char* must) -> client_error {
    return client_error(std::string("`--url` must be ") + must + ", got \"" + url + "\"");
  };
  std::string rest = url;
  endpoint where;
  where.api_key = std::move(api_key);
  where.authorities = std::move(authorities);
  if (url.starts_with("unix:")) {
    where.unix_path = url.substr(5);
    where.host = "localhost";
    if (!where.unix_path.starts_with('/') || where.unix_path.size() > 107)
      throw refuse("unix: and an absolute path of at most 107 bytes");
    return where;
  }
  if (const auto scheme_end = rest.find("://"); scheme_end != std::string::npos) {
    const auto scheme = rest.substr(0, scheme_end);
    where.tls = scheme == "https" || scheme == "wss";
    if (!where.tls && scheme != "http" && scheme != "ws")
      throw refuse("an http://, https://, ws:// or wss:// address, or unix:/PATH");
    rest.erase(0, scheme_end + 3);
  }
  const auto slash = rest.find('/');
  if (slash != std::string::npos) where.prefix = rest.substr(slash);
  while (!where.prefix.empty() && where.prefix.back() == '/')
    where.prefix.pop_back();
  // OpenAI's clients name a server by an address such as "http://host/v1".
  if (where.prefix.ends_with("/v1")) where.prefix.erase(where.prefix.size() - 3);
  const auto authority = rest.substr(0, slash);

  const auto bracket = authority.rfind(']');
  const auto colon = authority.rfind(':');
  const bool has_port =
      colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  where.host = authority.substr(0, has_port ? colon : std::string::npos);
  where.port = has_port ? authority.substr(colon + 1) : where.tls ? "443" : "80";
  if (where.host.size() > 2 && where.host.front() == '[' && where.host.back() == ']')
    where.host = where.host.substr(1, where.host.size() - 2);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_odd = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == '@'; };
  if (where.host.empty() || where.port.empty() || where.port.size() > 5 ||
      !std::all_of(where.port.begin(), where.port.end(), is_digit) ||
      std::any_of(rest.begin(), rest.end(), is_odd))
    throw refuse("like http://127.0.0.1:8080");
  return where;
}

} // namespace twill::tools
