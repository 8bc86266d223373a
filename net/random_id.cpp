#include "net/random_id.hpp"

#include <array>
#include <openssl/rand.h>

#include "config/base/assert.hpp"

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

} // namespace twill::net
