#include "models/offload/streams/checksum.hpp"

#include <cstddef>
#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h> // chooses the instruction set at run time
#endif

namespace twill::models::offload {

std::uint64_t checksum(const void* data, std::int64_t bytes) {
  return XXH3_64bits(data, static_cast<std::size_t>(bytes));
}

} // namespace twill::models::offload
