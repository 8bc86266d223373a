// Where a KV block of a layer begins, for kernels on any backend. The layer's strides must be
// spelled out: see checked_kv().
#pragma once

#include <cstdint>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/detail/kokkos_compat.hpp"

namespace twill::gpu::detail {

/// The element at which a block's keys, and its values, begin.
KOKKOS_INLINE_FUNCTION std::int64_t block_at(const kv_layer& kv, std::int64_t block) {
  return block * kv.block_stride + (block < kv.n_blocks ? 0 : kv.apart);
}

/// The scale at which a block's scales begin.
KOKKOS_INLINE_FUNCTION std::int64_t block_scales_at(const kv_layer& kv, std::int64_t block) {
  return block * kv.scale_stride + (block < kv.n_blocks ? 0 : kv.scale_apart);
}

} // namespace twill::gpu::detail
