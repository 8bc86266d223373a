// Shape checks at the entry of ops. A failed check is a programmer error and stops the process.
#pragma once

#include <cstdint>

#include "config/base/assert.hpp"
#include "gpu/attention/kv_element.hpp"
#include "gpu/attention/kv_layer.hpp"
#include "gpu/detail/activation_element.hpp"

namespace twill::gpu::detail {

inline void check_matrix(const tensor_ref& t, const char* message) {
  TWILL_ASSERT(t.rank == 2 && t.type == dtype::f32 && t.row_stride >= t.shape[1], message);
}

/// Checks a matrix of activations that only linear() reads: f32, f16 or bf16, of the given shape.
inline void check_activations(const tensor_ref& t, std::int64_t rows, std::int64_t cols,
                              const char* message) {
  TWILL_ASSERT(t.rank == 2 && is_activation_type(t.type) && t.row_stride >= t.shape[1] &&
                   t.shape[0] == rows && t.shape[1] == cols,
               message);
}

inline void check_matrix(const tensor_ref& t, std::int64_t rows, std::int64_t cols,
                         const char* message) {
  check_matrix(t, message);
  TWILL_ASSERT(t.shape[0] == rows && t.shape[1] == cols, message);
}

/// Checks a KV layer and returns it with strides of 0 replaced by the real strides.
inline kv_layer checked_kv(kv_layer kv) {
  TWILL_ASSERT(is_kv_type(kv.type), "KV's type must be one of gpu/attention/kv_element.hpp");
  TWILL_ASSERT(kv.head_dim > 0 && kv.head_dim <= max_head_dim, "KV's head_dim must be 1 to 256");
  TWILL_ASSERT(!has_kv_scales(kv.type) || (kv.key_scales != nullptr && kv.value_scales != nullptr),
               "KV of this type needs key_scales and value_scales");
  const std::int64_t scales = std::int64_t{kv.n_kv_heads} * kv.block_tokens;
  TWILL_ASSERT(kv.block_stride == 0 || kv.block_stride >= scales * kv.head_dim,
               "KV's block_stride must hold a block");
  TWILL_ASSERT(kv.scale_stride == 0 || kv.scale_stride >= scales,
               "KV's scale_stride must hold a block");
  if (kv.block_stride == 0) kv.block_stride = scales * kv.head_dim;
  if (kv.scale_stride == 0) kv.scale_stride = scales;
  return kv;
}

} // namespace twill::gpu::detail
