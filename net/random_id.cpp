#include "net/random_id.hpp"

#include <array>
#include <openssl/rand.h>

#include "config/base/assert.hpp"
#include "net/digest.hpp"

namespace twill::net {

std::string make_id(std::string_view prefix) {
  static constexpr char digits[] = "0123456789abcdef";
  std::array<unsigned char, 12> bytes{};
  TWILL_ASSERT(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
               "the system gives no random bytes");
  std::string id(prefix);
  for (const auto byte : bytes) {
    id += digits[byte >> 4];
    id += digits[byte & 15];
  }
  return id;
}

std::string make_id(std::string_view prefix, std::string_view server_name) {
  if (server_name.empty()) return make_id(prefix);
  return make_id(std::string(prefix) + std::string(server_name) + ".");
}

std::string part_id(std::string_view prefix, std::string_view of, std::size_t which) {
  digest hash(digest_kind::sha256);
  hash.add(of);
  hash.add("/" + std::to_string(which));
  return std::string(prefix) + hash.hex().substr(0, 24);
}

std::uint32_t draw_seed() {
  std::array<unsigned char, 4> bytes{};
  TWILL_ASSERT(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
               "the system gives no random bytes");
  std::uint32_t seed = 0;
  for (const auto byte : bytes)
    seed = seed << 8 | byte;
  return seed;
}

} // namespace twill::net
