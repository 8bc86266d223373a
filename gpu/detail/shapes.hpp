// Shape checks at the entry of ops. Failing one is a programmer error and stops the process.
#pragma once

#include <cstdint>

#include "config/base/assert.hpp"
#include "gpu/ops/attention.hpp"

namespace twill::gpu::detail {

inline void check_matrix(const tensor_ref& t, const char* message) {
  TWILL_ASSERT(t.rank == 2 && t.type == dtype::f32 && t.row_stride >= t.shape[1], message);
}

inline void check_matrix(const tensor_ref& t, std::int64_t rows, std::int64_t cols,
                         const char* message) {
  check_matrix(t, message);
  TWILL_ASSERT(t.shape[0] == rows && t.shape[1] == cols, message);
}

inline void check_kv(const kv_layer& kv) {
  TWILL_ASSERT(kv.type == dtype::f32 || kv.type == dtype::f16 || kv.type == dtype::bf16 ||
                   kv.type == dtype::i8,
               "KV must be f32, f16, bf16 or i8");
  TWILL_ASSERT(kv.type != dtype::i8 || (kv.key_scales != nullptr && kv.value_scales != nullptr),
               "i8 KV needs key_scales and value_scales");
}

} // namespace twill::gpu::detail
