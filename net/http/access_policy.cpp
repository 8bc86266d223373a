#include "net/http/access_policy.hpp"

#include <algorithm>

namespace twill::net {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

/// Returns the host of "host:port": "name", "1.2.3.4" or "[::1]".
std::string_view without_port(std::string_view host) {
  const auto colon = host.rfind(':');
  if (colon == std::string_view::npos || host.find(']', colon) != std::string_view::npos)
    return host;
  return host.substr(0, colon);
}

/// A host of digits and dots cannot be a name, because no top-level domain consists of digits only.
bool is_address(std::string_view host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') return true;
  return !host.empty() && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host == "::1" || host.starts_with("127.");
}

/// True if an address of `server.listen` can be reached only from this machine.
bool is_local(const std::string& address) {
  return address.starts_with("unix:") || is_loopback(lower(without_port(address)));
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

} // namespace

access_policy::access_policy(const config::server_options& options) {
  for (const auto& host : options.hosts)
    hosts_.push_back(lower(host));
  for (const auto& origin : options.cors_origins)
    origins_.push_back(lower(origin));
  any_host_ =
      contains(hosts_, "*") ||
      (hosts_.empty() && !std::all_of(options.listen.begin(), options.listen.end(), is_local));
  any_origin_ = contains(origins_, "*");
}

access_policy access_policy::of_administrators(const config::server_options& options) {
  auto strict = options;
  strict.listen = {options.admin_listen};
  std::erase(strict.hosts, "*");
  std::erase(strict.cors_origins, "*");
  return access_policy(strict);
}

bool access_policy::serves_host(std::string_view host_header) const {
  if (any_host_ || host_header.empty()) return true; // HTTP/1.0 clients may send no Host header
  const auto host = lower(without_port(host_header));
  return host == "localhost" || is_address(host) || contains(hosts_, host);
}

access_policy::origin_kind access_policy::classify(std::string_view origin,
                                                   std::string_view host_header) const {
  if (origin.empty()) return origin_kind::none;
  const auto given = lower(origin);
  const auto host = lower(host_header);
  if (!host.empty() && (given == "http://" + host || given == "https://" + host))
    return origin_kind::own;
  return any_origin_ || contains(origins_, given) ? origin_kind::allowed : origin_kind::foreign;
}

} // namespace twill::net
