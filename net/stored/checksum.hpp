// stored_checksum: 64 bits that tell whether bytes of a file came back as they were written, and at
// the place where they were written. Not cryptographic. Pure. XXH3, as the disk tier of the KV
// cache uses it.
#pragma once

#include <cstdint>
#include <string_view>

namespace twill::net {

/// `place` is where in the file the bytes lie: equal bytes elsewhere have another checksum.
std::uint64_t stored_checksum(std::string_view bytes, std::int64_t place);

} // namespace twill::net
