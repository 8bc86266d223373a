// checksum: a 64-bit checksum, to detect bytes that a store returns differently from how they were
// written. Not cryptographic.
//
// The functions are pure. It is XXH3 (github.com/Cyan4973/xxHash), computed with the widest vector
// instructions of the processor.
#pragma once

#include <cstdint>

namespace twill::models::offload {

std::uint64_t checksum(const void* data, std::int64_t bytes);

} // namespace twill::models::offload
