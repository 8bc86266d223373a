// Where a KV block of a layer begins, for kernels on any backend. The layer's strides must be
// spelled out: see checked_kv().
#pragma once

#include <cstdint>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/detail/half.hpp"

namespace twill::gpu::detail {

/// The element at which a block's keys, and its values, begin.
TWILL_KERNEL_INLINE std::int64_t block_at(const kv_layer& kv, std::int64_t block) {
  return block * kv.block_stride + (block < kv.n_blocks ? 0 : kv.apart);
}

/// The scale at which a block's scales begin.
TWILL_KERNEL_INLINE std::int64_t block_scales_at(const kv_layer& kv, std::int64_t block) {
  return block * kv.scale_stride + (block < kv.n_blocks ? 0 : kv.scale_apart);
}

} // namespace twill::gpu::detail
