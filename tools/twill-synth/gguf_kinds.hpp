// gguf_kinds: quantises or rounds f32 rows to the element types of GGUF, such as Q4_0 or F16. The
// functions are pure.
//
// The decoder of these layouts in models/checkpoint/gguf/kinds shares no code with this encoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace twill::synth {

struct gguf_kind {
  std::uint32_t id;
  const char* name;
  std::int32_t block_values; ///< values per quantised block; 1 for dense kinds
  std::int32_t block_bytes;
};

/// Returns the kind of that name; nullptr for a kind that cannot be written.
const gguf_kind* find_gguf_kind(std::string_view name);

/// Converts `n` values, a multiple of `block_values`, and writes them to `out`.
void round_values(const gguf_kind& kind, const float* values, std::int64_t n, std::byte* out);

} // namespace twill::synth
