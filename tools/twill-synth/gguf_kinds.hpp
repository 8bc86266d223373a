// gguf_kinds: rounds f32 rows to GGUF element kinds. Pure functions.
//
// models/checkpoint/gguf/kinds decodes these layouts, with no code in common.
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

/// The kind of that name; nullptr for one that is not written.
const gguf_kind* find_gguf_kind(std::string_view name);

/// Rounds `n` values, a multiple of `block_values`, to `out`.
void round_values(const gguf_kind& kind, const float* values, std::int64_t n, std::byte* out);

} // namespace twill::synth
