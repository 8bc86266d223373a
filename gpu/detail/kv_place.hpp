// Functions for kernels on any backend that compute where a KV block of a layer begins. The layer's
// strides must not be 0: checked_kv() replaces strides of 0 by the real ones.
#pragma once

#include <cstdint>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/detail/half.hpp"

namespace twill::gpu::detail {

/// The index of the element at which a block's keys begin in kv.keys, and its values in kv.values.
TWILL_KERNEL_INLINE std::int64_t block_at(const kv_layer& kv, std::int64_t block) {
  return block * kv.block_stride + (block < kv.n_blocks ? 0 : kv.apart);
}

/// The index of the scale at which a block's scales begin.
TWILL_KERNEL_INLINE std::int64_t block_scales_at(const kv_layer& kv, std::int64_t block) {
  return block * kv.scale_stride + (block < kv.n_blocks ? 0 : kv.scale_apart);
}

} // namespace twill::gpu::detail
