#include "net/stored/checksum.hpp"

#include <xxhash.h>

namespace twill::net {

std::uint64_t stored_checksum(std::string_view bytes, std::int64_t place) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), static_cast<XXH64_hash_t>(place));
}

} // namespace twill::net
