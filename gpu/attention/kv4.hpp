// KV blocks in 4 bits, for the way to a slower memory tier and back. Lossy.
//
// This is FlexGen's compression (arXiv 2303.06865, section 5): up to 64 neighbouring dimensions of
// one head of one token share an offset and a scale, which are the group's least value and a
// fifteenth of its range, both rounded to f16; value = offset + scale * code. A packed block has
// all it needs: (keys, values) x n_kv_heads x (codes, offsets, scales). Values beyond f16's range
// are cut to it.
#pragma once

#include "gpu/attention/kv_layer.hpp"
#include "gpu/device.hpp"

namespace twill::gpu {

inline constexpr std::int32_t kv4_group = 64; ///< dimensions; fewer at a head's end

/// Whether KV of this type and shape can be packed: i8 cannot, since its codes are small already,
/// nor can an odd head_dim.
bool has_kv4(const kv_layer& kv);

/// Bytes of one packed block.
std::int64_t kv4_block_bytes(const kv_layer& kv);

/// Packs blocks [first, first + count): block b goes to packed + b * stride, in device memory.
void kv4_pack(device& dev, const kv_layer& kv, std::int32_t first, std::int32_t count, void* packed,
              std::int64_t stride);

/// Unpacks blocks [first, first + count) from packed + b * stride into `kv`. Every value is within
/// half a group's scale, and f16's rounding, of what it was.
void kv4_unpack(device& dev, const kv_layer& kv, std::int32_t first, std::int32_t count,
                const void* packed, std::int64_t stride);

} // namespace twill::gpu
