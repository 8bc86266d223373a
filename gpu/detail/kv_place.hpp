// Where a block of a layer's KV begins. For kernels on any backend; the layer has its strides.
#pragma once

#include <cstdint>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/detail/kokkos_compat.hpp"

namespace twill::gpu::detail {

/// Elements from the first block's keys, and values, on.
KOKKOS_INLINE_FUNCTION std::int64_t block_at(const kv_layer& kv, std::int64_t block) {
  return block * kv.block_stride + (block < kv.n_blocks ? 0 : kv.apart);
}

/// The same for scales.
KOKKOS_INLINE_FUNCTION std::int64_t block_scales_at(const kv_layer& kv, std::int64_t block) {
  return block * kv.scale_stride + (block < kv.n_blocks ? 0 : kv.scale_apart);
}

} // namespace twill::gpu::detail
