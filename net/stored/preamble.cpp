#include "net/stored/preamble.hpp"

#include "net/stored/checksum.hpp"
#include "net/stored/little_endian.hpp"

namespace twill::net {
namespace {

constexpr std::uint32_t version = 1;
constexpr std::size_t magic_bytes = 8;
constexpr std::size_t summed_bytes = 16;

std::string_view magic_of(stored_kind kind) {
  return kind == stored_kind::journal ? "twilljnl" : "twillrsp";
}

} // namespace

std::string make_preamble(stored_kind kind) {
  std::string bytes(magic_of(kind));
  put_integer(bytes, version);
  put_integer(bytes, std::uint32_t{0});
  put_integer(bytes, stored_checksum(bytes, 0));
  return bytes;
}

preamble_state check_preamble(std::string_view bytes, stored_kind kind) {
  if (bytes.substr(0, magic_bytes) != magic_of(kind) ||
      get_integer<std::uint64_t>(bytes.substr(summed_bytes)) !=
          stored_checksum(bytes.substr(0, summed_bytes), 0))
    return preamble_state::damaged;
  if (get_integer<std::uint32_t>(bytes.substr(magic_bytes)) != version)
    return preamble_state::other_version;
  return bytes == make_preamble(kind) ? preamble_state::right : preamble_state::damaged;
}

} // namespace twill::net
