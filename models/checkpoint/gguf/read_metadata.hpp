// read_metadata: reads the key-value section of a GGUF file. The memory used is a small multiple of
// the bytes read.
#pragma once

#include <cstdint>

#include "models/checkpoint/gguf/cursor.hpp"
#include "models/checkpoint/gguf/metadata.hpp"

namespace twill::models::gguf {

/// Reads `count` pairs and leaves the cursor behind them. Fails with bad_format on anything that
/// contradicts the format, duplicate keys included.
result<metadata> read_metadata(cursor& in, std::uint64_t count);

} // namespace twill::models::gguf
