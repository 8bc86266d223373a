// Rounding of f32 rows to GGUF element kinds: the block layouts that models/checkpoint/gguf/kinds
// decodes.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace twill::synth {

struct gguf_kind {
  std::uint32_t id;
  const char* name;
  std::int32_t block_values; ///< 1: not in blocks
  std::int32_t block_bytes;
};

/// nullptr for a kind that is not written.
const gguf_kind* find_gguf_kind(std::string_view name);

/// `n` values, a multiple of the kind's block, to `out`.
void round_values(const gguf_kind& kind, const float* values, std::int64_t n, std::byte* out);

} // namespace twill::synth
