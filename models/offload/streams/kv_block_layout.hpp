// kv_block_layout: one block's keys and values of one layer side by side, then, of i8, their
// scales; each part from a multiple of 64 bytes on. Pure.
#pragma once

#include <cstdint>

#include "gpu/attention/kv_layer.hpp"

namespace twill::models::offload {

struct kv_block_layout {
  std::int64_t elements = 0; ///< bytes of the keys, and of the values
  std::int64_t scales = 0;   ///< of the keys' scales, and of the values'

  /// Of a layer's type, heads, head_dim and block_tokens.
  explicit kv_block_layout(const gpu::kv_layer& shape);

  std::int64_t bytes() const { return 2 * (elements + scales); }
  /// `shape` with its first record at `first`, the others `stride` bytes apart, a multiple of 4.
  gpu::kv_layer layer_at(gpu::kv_layer shape, unsigned char* first, std::int64_t stride) const;
};

} // namespace twill::models::offload
