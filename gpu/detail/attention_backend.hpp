// attention_backend: the functions behind gpu/attention/attention.hpp, one table per backend. The
// device chooses its tables once (gpu/detail/op_backends.hpp). Executor thread only.
#pragma once

#include <cstdint>

#include "gpu/attention/attention.hpp"
#include "gpu/detail/op.hpp"

namespace twill::gpu::detail {

struct kv4_geometry;

struct attention_backend {
  /// The largest number of bytes of device::scratch() that `attend` takes for up to `n_tokens`
  /// tokens, each of which attends to up to `reach` positions.
  std::int64_t (*scratch_bytes)(const device& dev, std::int32_t n_heads, std::int32_t n_kv_heads,
                                std::int32_t head_dim, std::int64_t n_tokens, std::int64_t reach);
  /// Computes attention. The caller has checked the arguments and has replaced strides of 0 in the
  /// KV layer by the real strides (detail::checked_kv()).
  op<const ragged_batch&, const attention_args&> attend;
  /// Pack and unpack KV blocks: `items` counts the groups of all heads of all blocks.
  op<const kv4_geometry&, long> kv4_pack, kv4_unpack;
};

extern const attention_backend portable_attention; ///< portable/backends.cpp
extern const attention_backend host_attention;     ///< attention/host/attention_host.cpp

} // namespace twill::gpu::detail
