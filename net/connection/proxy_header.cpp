#include "net/connection/proxy_header.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace twill::net {
namespace {

using state = proxy_header::state;
using namespace std::string_view_literals;

constexpr auto signature_1 = "PROXY "sv;
constexpr auto signature_2 = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr std::size_t shortest_1 = "PROXY UNKNOWN\r\n"sv.size();
constexpr std::size_t longest_1 = 107; ///< a limit of the specification; includes the line end
constexpr std::size_t fixed_2 = 16;
constexpr std::size_t longest_2 = 4096; ///< the addresses and the optional fields after them

proxy_header need(std::size_t bytes) {
  return {state::need_more, bytes, {}};
}
proxy_header malformed() {
  return {state::malformed, 0, {}};
}

std::string_view next_word(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && stop == end && port <= 65535;
}

/// `line` must be without its line end.
proxy_header read_line(std::string_view line) {
  line.remove_prefix(signature_1.size());
  const auto family = next_word(line);
  if (family == "UNKNOWN") return {state::done, 0, {}};
  const bool v4 = family == "TCP4";
  if (!v4 && family != "TCP6") return malformed();
  // next_word() would take the space as the end of the port.
  if (line.ends_with(' ')) return malformed();
  const auto source = ip_address::parse(next_word(line));
  const auto target = ip_address::parse(next_word(line));
  const bool ports = is_port(next_word(line)) && is_port(next_word(line));
  if (!source || !target || !ports || !line.empty()) return malformed();
  if (v4 && !(source->is_v4() && target->is_v4())) return malformed();
  return {state::done, 0, source};
}

proxy_header read_version_1(std::string_view bytes) {
  const auto known = std::min(bytes.size(), signature_1.size());
  if (bytes.substr(0, known) != signature_1.substr(0, known)) return malformed();
  if (bytes.ends_with("\r\n")) return read_line(bytes.substr(0, bytes.size() - 2));
  const auto end = bytes.find('\r');
  if (end != std::string_view::npos && end + 1 != bytes.size()) return malformed();
  if (bytes.size() >= longest_1) return malformed();
  if (bytes.size() < shortest_1) return need(shortest_1 - bytes.size());
  return need(end == std::string_view::npos && bytes.size() + 2 <= longest_1 ? 2 : 1);
}

proxy_header read_version_2(std::string_view bytes) {
  if (bytes.size() < fixed_2) return need(fixed_2 - bytes.size());
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const auto version = byte(12) >> 4;
  const auto command = byte(12) & 15;
  const auto family = byte(13);
  const std::size_t length = byte(14) * 256u + byte(15);
  if (version != 2 || command > 1 || length > longest_2) return malformed();
  if (bytes.size() < fixed_2 + length) return need(fixed_2 + length - bytes.size());
  const auto* body = reinterpret_cast<const std::uint8_t*>(bytes.data()) + fixed_2;
  // The LOCAL command: the proxy connects on its own behalf, for example for a health check.
  if (command == 0) return {state::done, 0, {}};
  switch (family) {
  case 0x11: // TCP over IPv4
    if (length < 12) return malformed();
    return {state::done, 0, ip_address::from_v4(body)};
  case 0x21: // TCP over IPv6
    if (length < 36) return malformed();
    return {state::done, 0, ip_address::from_v6(body)};
  case 0x00: // unspecified
  case 0x31: // a Unix socket
    return {state::done, 0, {}};
  default:
    return malformed();
  }
}

} // namespace

proxy_header read_proxy_header(std::string_view bytes) {
  if (bytes.empty()) return need(shortest_1);
  return bytes.front() == signature_2.front()
             ? (bytes.substr(0, signature_2.size()) == signature_2.substr(0, bytes.size())
                    ? read_version_2(bytes)
                    : malformed())
             : read_version_1(bytes);
}

} // namespace twill::net
