// Blocks of KV in 4 bits, for the way to a slower tier and back. Lossy.
//
// FlexGen's compression (arXiv 2303.06865, section 5): up to 64 neighbouring dimensions of one head
// of one token share an offset and a step, the group's least value and a fifteenth of its range,
// both rounded to f16; value = offset + step * code. A packed block stands alone: (keys, values) x
// n_kv_heads x (codes, offsets, steps). Values beyond f16's range are cut to it.
#pragma once

#include "gpu/attention/kv_layer.hpp"
#include "gpu/device.hpp"

namespace twill::gpu {

inline constexpr std::int32_t kv4_group = 64; ///< dimensions, fewer at a head's end

/// Whether blocks of this shape have such a form: not i8, whose codes are small already, and only
/// even head_dim.
bool has_kv4(const kv_layer& kv);

/// Bytes of one packed block.
std::int64_t kv4_block_bytes(const kv_layer& kv);

/// Packs blocks [first, first + count): block b goes to packed + b * stride, in device memory.
void kv4_pack(device& dev, const kv_layer& kv, std::int32_t first, std::int32_t count, void* packed,
              std::int64_t stride);

/// The same back into `kv`. Every value is within half a step, and f16's rounding, of what it was.
void kv4_unpack(device& dev, const kv_layer& kv, std::int32_t first, std::int32_t count,
                const void* packed, std::int64_t stride);

} // namespace twill::gpu
