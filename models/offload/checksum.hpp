// checksum: 64 bits that tell whether bytes came back as they were written. Not cryptographic.
//
// Pure. Eight lanes of multiply and rotate, so that it runs at the memory's speed, far above a
// disk's (the lane step is that of xxHash's 64-bit form).
#pragma once

#include <cstdint>

namespace twill::models::offload {

std::uint64_t checksum(const void* data, std::int64_t bytes);

} // namespace twill::models::offload
