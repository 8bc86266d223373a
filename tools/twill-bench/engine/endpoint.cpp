#include "tools/twill-bench/engine/endpoint.hpp"

#include <stdexcept>

namespace twill::bench {

std::string endpoint::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + port;
}

endpoint parse_base_url(std::string_view url) {
  const auto bad = [&](const char* rule) {
    return std::invalid_argument("--base-url must be " + std::string(rule) + ", got " +
                                 std::string(url));
  };
  std::string_view rest = url;
  endpoint out;
  if (const std::size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    const std::string_view name = rest.substr(0, scheme);
    out.tls = name == "https" || name == "wss";
    if (!out.tls && name != "http" && name != "ws")
      throw bad("an http://, https://, ws:// or wss:// address");
    if (out.tls) out.port = "443";
    rest.remove_prefix(scheme + 3);
  }
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    out.prefix = rest.substr(slash);
    while (!out.prefix.empty() && out.prefix.back() == '/')
      out.prefix.pop_back();
    rest = rest.substr(0, slash);
  }
  std::string_view port;
  if (!rest.empty() && rest.front() == '[') {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) throw bad("an address with a closed bracket");
    out.host = rest.substr(1, close - 1);
    port = rest.substr(close + 1);
  } else {
    const std::size_t colon = rest.find(':');
    out.host = rest.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view() : rest.substr(colon);
  }
  if (!port.empty()) {
    out.port = port.substr(1);
    if (port.front() != ':' || out.port.empty() || out.port.size() > 5 ||
        out.port.find_first_not_of("0123456789") != std::string::npos)
      throw bad("an address whose port is a number");
  }
  if (out.host.empty()) throw bad("an address with a host");
  return out;
}

} // namespace twill::bench
