// KV blocks packed to 4 bits, for moving them to a slower memory tier and back. Lossy.
//
// This is FlexGen's compression (arXiv 2303.06865, section 5): up to 64 neighbouring dimensions of
// one head of one token form a group, whose values are offset + scale * code. The offset is the
// group's least value and the scale is a fifteenth of its range, both rounded to f16. A packed
// block holds, for keys and then for values, and for each KV head: codes, offsets, scales. Values
// beyond f16's range are clamped to that range.
#pragma once

#include "gpu/attention/kv_layer.hpp"
#include "gpu/device.hpp"

namespace twill::gpu {

inline constexpr std::int32_t kv4_group = 64; ///< dimensions; fewer at a head's end

/// Whether KV of this type and shape can be packed. i8 KV cannot, since its codes are small
/// already; KV with an odd head_dim cannot either.
bool has_kv4(const kv_layer& kv);

/// Bytes of one packed block.
std::int64_t kv4_block_bytes(const kv_layer& kv);

/// Packs blocks [first, first + count): block b goes to packed + b * stride, in device memory.
void kv4_pack(device& dev, const kv_layer& kv, std::int32_t first, std::int32_t count, void* packed,
              std::int64_t stride);

/// Unpacks blocks [first, first + count) into `kv`; block b is read from packed + b * stride. A
/// value differs from the value before packing by at most half its group's scale, plus the error of
/// rounding the offset and the scale to f16, unless it was clamped.
void kv4_unpack(device& dev, const kv_layer& kv, std::int32_t first, std::int32_t count,
                const void* packed, std::int64_t stride);

} // namespace twill::gpu
