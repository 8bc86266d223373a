#include "net/http/forwarded_for.hpp"

#include <algorithm>

namespace twill::net {
namespace {

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Parses "1.2.3.4", "1.2.3.4:567", "::1", "[::1]" or "[::1]:567".
std::optional<ip_address> parse_entry(std::string_view entry) {
  const auto colon = entry.rfind(':');
  const bool port = colon != std::string_view::npos &&
                    (entry.find(':') == colon || (entry.front() == '[' && entry[colon - 1] == ']'));
  return ip_address::parse(port ? entry.substr(0, colon) : entry);
}

} // namespace

trusted_proxies::trusted_proxies(const std::vector<std::string>& configured) {
  for (const auto& text : configured)
    if (text == "unix")
      unix_sockets_ = true;
    else if (const auto network = ip_network::parse(text))
      networks_.push_back(*network);
}

bool trusted_proxies::trusts(const std::optional<ip_address>& peer) const {
  if (!peer.has_value()) return unix_sockets_;
  return std::any_of(networks_.begin(), networks_.end(),
                     [&](const ip_network& n) { return n.contains(*peer); });
}

forwarded_client find_forwarded_client(std::string_view list, const trusted_proxies& trusted) {
  forwarded_client found;
  while (!list.empty()) {
    const auto comma = list.rfind(',');
    const auto entry = trim(comma == std::string_view::npos ? list : list.substr(comma + 1));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(0, comma);
    if (entry.empty()) continue;
    const auto address = parse_entry(entry);
    if (!address.has_value()) return {true, {}};
    found.client = address;
    if (!trusted.trusts(address)) break;
  }
  return found;
}

} // namespace twill::net
