// Attention over paged KV, for ragged batches and query heads that share KV heads (grouped-query
// attention).
//
// Softmax is computed online, in one pass over the keys. A row (one token of the batch) gets a
// result that depends only on its own sequence, never on the other rows of the batch, on how a
// prompt is cut into chunks or on the thread count. Executor thread only.
#pragma once

#include <cstdint>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/device.hpp"
#include "gpu/ragged.hpp"

namespace twill::gpu {

struct attention_args {
  tensor_ref q; // (n_tokens, n_heads * head_dim) f32
  kv_layer kv;
  std::int32_t n_heads = 0;
  float scale = 0;                     ///< usually 1 / sqrt(head_dim)
  std::int32_t window = 0;             ///< query i sees keys j with i - j < window; 0: all
  const float* alibi_slopes = nullptr; // (n_heads) device, or null
  tensor_ref out; // (n_tokens, n_heads * head_dim) f32, or f16 or bf16: each value rounded once
  /// Allows queries, keys, softmax weights and values to be rounded to bf16 before they are
  /// multiplied. A host processor with bf16 dot-product instructions then rounds them, unless the
  /// KV is f32.
  bool bf16_products = false;
};

void attention(device& dev, const ragged_batch& batch, const attention_args& args);

/// The largest number of bytes of device::scratch() that attention() takes for up to `n_tokens`
/// tokens, each of which attends to up to `reach` positions.
std::int64_t attention_scratch_bytes(const device& dev, std::int32_t n_heads,
                                     std::int32_t n_kv_heads, std::int32_t head_dim,
                                     std::int64_t n_tokens, std::int64_t reach);

} // namespace twill::gpu
