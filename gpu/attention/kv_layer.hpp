// kv_layer: one layer's paged keys and values.
//
// Values have the shape (n_blocks, n_kv_heads, block_tokens, head_dim). Keys have the shape
// (n_blocks, n_kv_heads, head_dim, block_tokens): attention computes the scores of neighbouring
// positions together in one SIMD vector, so the positions of one dimension lie side by side. The
// keys of one head in one block are contiguous. The struct does not own the memory.
#pragma once

#include <cstdint>

#include "gpu/tensor.hpp"

namespace twill::gpu {

inline constexpr std::int32_t max_head_dim = 256;

/// One layer's KV arena, the memory of all its KV blocks. i8 KV has one f32 scale for each key and
/// for each value of a head and token: element = scale * code, where scale is the largest magnitude
/// / 127 and codes are rounded to nearest even.
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
  /// Elements from the start of one block's keys to the start of the next block's keys; the values
  /// have the same stride. 0: blocks follow each other without a gap.
  std::int64_t block_stride = 0;
  /// Scales from the start of one block's scales to the start of the next block's; 0: no gap.
  std::int64_t scale_stride = 0;
  /// Blocks numbered n_blocks and above may lie in another allocation. Such a block begins `apart`
  /// elements after the address that block_stride gives, and its scales begin `scale_apart` scales
  /// after the address that scale_stride gives.
  std::int64_t apart = 0;
  std::int64_t scale_apart = 0;
};

} // namespace twill::gpu
