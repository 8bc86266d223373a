// checksum: 64 bits that tell whether bytes came back as they were written. Not cryptographic.
//
// Pure. XXH3 (github.com/Cyan4973/xxHash) in the widest form the processor has.
#pragma once

#include <cstdint>

namespace twill::models::offload {

std::uint64_t checksum(const void* data, std::int64_t bytes);

} // namespace twill::models::offload
