#include "config/base/ip_network.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace twill {
namespace {

constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

} // namespace

ip_address ip_address::from_v4(const std::uint8_t* four) {
  ip_address made;
  std::copy(std::begin(mapped), std::end(mapped), made.bytes_.begin());
  std::copy(four, four + 4, made.bytes_.begin() + 12);
  return made;
}

ip_address ip_address::from_v6(const std::uint8_t* sixteen) {
  ip_address made;
  std::copy(sixteen, sixteen + 16, made.bytes_.begin());
  return made;
}

std::optional<ip_address> ip_address::parse(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  const std::string name(text); // inet_pton wants a zero at its end
  if (name.find('\0') != std::string::npos) return std::nullopt;
  std::uint8_t raw[16];
  if (inet_pton(AF_INET, name.c_str(), raw) == 1) return from_v4(raw);
  if (inet_pton(AF_INET6, name.c_str(), raw) == 1) return from_v6(raw);
  return std::nullopt;
}

bool ip_address::is_v4() const {
  return std::equal(std::begin(mapped), std::end(mapped), bytes_.begin());
}

bool ip_address::is_loopback() const {
  if (is_v4()) return bytes_[12] == 127;
  return std::all_of(bytes_.begin(), bytes_.end() - 1, [](auto b) { return b == 0; }) &&
         bytes_[15] == 1;
}

std::string ip_address::text() const {
  char out[INET6_ADDRSTRLEN] = "";
  if (is_v4())
    inet_ntop(AF_INET, bytes_.data() + 12, out, sizeof out);
  else
    inet_ntop(AF_INET6, bytes_.data(), out, sizeof out);
  return out;
}

std::optional<ip_network> ip_network::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = ip_address::parse(text.substr(0, slash));
  if (!address.has_value()) return std::nullopt;
  ip_network made;
  made.first_ = *address;
  if (slash == std::string_view::npos) return made;
  // The text decides the width: the 8 bits of "::ffff:10.0.0.0/8" are bits of an IPv6 address.
  const int width = text.find(':') == std::string_view::npos ? 32 : 128;
  const auto* end = text.data() + text.size();
  int bits = -1;
  const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
  if (error != std::errc{} || stop != end || bits < 0 || bits > width) return std::nullopt;
  made.bits_ = 128 - width + bits;
  return made;
}

bool ip_network::contains(const ip_address& one) const {
  const auto& a = first_.as_v6();
  const auto& b = one.as_v6();
  const auto whole = static_cast<std::size_t>(bits_ / 8);
  if (std::memcmp(a.data(), b.data(), whole) != 0) return false;
  const int rest = bits_ % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

} // namespace twill
