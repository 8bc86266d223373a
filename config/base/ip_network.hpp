// ip_address and ip_network: IPv4 and IPv6 addresses as values, and the networks that hold them
// ("10.0.0.0/8", "::1"). The functions are pure; any thread may call them. An IPv4 address mapped
// into IPv6 is that IPv4 address.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twill {

class ip_address {
public:
  using bytes = std::array<std::uint8_t, 16>;

  /// "1.2.3.4", "::1" or "[::1]".
  static std::optional<ip_address> parse(std::string_view text);
  /// 4 or 16 bytes in network order.
  static ip_address from_v4(const std::uint8_t* four);
  static ip_address from_v6(const std::uint8_t* sixteen);

  bool is_v4() const;
  bool is_loopback() const;
  std::string text() const;
  /// IPv4 in IPv6's form (::ffff:1.2.3.4).
  const bytes& as_v6() const noexcept { return bytes_; }
  bool operator==(const ip_address&) const = default;

private:
  bytes bytes_{};
};

class ip_network {
public:
  /// "ADDRESS/BITS" or one address.
  static std::optional<ip_network> parse(std::string_view text);
  bool contains(const ip_address& one) const;

private:
  ip_address first_;
  int bits_ = 128; ///< of the IPv6 form
};

} // namespace twill
