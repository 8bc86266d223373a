// kv_block_layout: the bytes of one KV block of one layer: its keys, its values, then for i8 the
// scales of both. Each part begins at a multiple of 64 bytes. The functions are pure.
#pragma once

#include <cstdint>

#include "gpu/attention/kv_layer.hpp"

namespace twill::models::offload {

struct kv_block_layout {
  std::int64_t elements = 0; ///< bytes of the keys, and as many of the values
  std::int64_t scales = 0;   ///< bytes of the keys' scales, and as many of the values'

  /// Reads type, heads, head_dim and block_tokens of the layer.
  explicit kv_block_layout(const gpu::kv_layer& shape);

  std::int64_t bytes() const { return 2 * (elements + scales); }
  /// `shape` with its first block at `first` and the others `stride` bytes apart, a multiple of 4.
  gpu::kv_layer layer_at(gpu::kv_layer shape, unsigned char* first, std::int64_t stride) const;
};

} // namespace twill::models::offload
