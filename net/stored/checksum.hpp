// stored_checksum: a 64-bit checksum over bytes of a file and their position in the file. It
// detects bytes that were changed or moved. It is not cryptographic. The functions are pure. The
// algorithm is XXH3, which twill also uses for KV blocks on disk.
#pragma once

#include <cstdint>
#include <string_view>

namespace twill::net {

/// `place` is the offset of the bytes in the file; equal bytes at another offset have another
/// checksum.
std::uint64_t stored_checksum(std::string_view bytes, std::int64_t place);

} // namespace twill::net
