// kv_layer: one layer's paged keys and values.
//
// Values are shaped (n_blocks, n_kv_heads, block_tokens, head_dim), keys (n_blocks, n_kv_heads,
// head_dim, block_tokens): attention wants scores for neighbouring positions at once, so vectors of
// positions lie side by side. One head's keys of one block are contiguous. The struct does not own
// the memory.
#pragma once

#include <cstdint>

#include "gpu/tensor.hpp"

namespace twill::gpu {

inline constexpr std::int32_t max_head_dim = 256;

/// One layer's KV arena. i8 KV has one f32 scale per head and token: value = scale * code, where
/// scale is the largest magnitude / 127 and codes are rounded to nearest even.
struct kv_layer {
  void* keys = nullptr;    // (n_blocks, n_kv_heads, head_dim, block_tokens)
  void* values = nullptr;  // (n_blocks, n_kv_heads, block_tokens, head_dim)
  dtype type = dtype::f32; ///< one of kv_element.hpp
  std::int32_t n_blocks = 0;
  std::int32_t n_kv_heads = 0;
  std::int32_t block_tokens = 0;
  std::int32_t head_dim = 0;     ///< at most max_head_dim
  float* key_scales = nullptr;   // (n_blocks, n_kv_heads, block_tokens), i8 only
  float* value_scales = nullptr; // (n_blocks, n_kv_heads, block_tokens), i8 only
  /// Elements from one block's keys to the next block's, and likewise for values; 0: blocks follow
  /// each other without a gap.
  std::int64_t block_stride = 0;
  /// Scales from one block's to the next block's; 0: they follow each other without a gap.
  std::int64_t scale_stride = 0;
  /// Blocks numbered n_blocks and above lie `apart` elements further than their number says, which
  /// may be in another allocation; their scales lie `scale_apart` scales further.
  std::int64_t apart = 0;
  std::int64_t scale_apart = 0;
};

} // namespace twill::gpu
