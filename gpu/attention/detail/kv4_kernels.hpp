// The kernels of kv4.hpp, which pack KV blocks to 4 bits, on any backend. A group is up to 64
// dimensions of one head's keys or values in one KV block. A work item packs or unpacks one group
// on the host, and one position of a group on a GPU. Each position of a group has its own scale and
// offset.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/attention/kv4.hpp"
#include "gpu/detail/kv_place.hpp"
#include "gpu/detail/kv_rows.hpp"

namespace twill::gpu::detail {

inline constexpr float most_code = 15.0f;
inline constexpr float largest_f16 = 65504.0f;

/// A group's offset and scale, rounded to f16: as floats and as the bits of f16.
struct group_scale {
  float offset, scale;
  std::uint16_t offset_bits, scale_bits;
};

TWILL_KERNEL_INLINE group_scale scale_of(float low, float high) {
  low = ::fmaxf(low, -largest_f16);
  high = ::fminf(high, largest_f16);
  group_scale g;
  g.offset_bits = f32_to_f16(low);
  g.offset = f16_to_f32(g.offset_bits);
  g.scale_bits = f32_to_f16(::fmaxf(high - g.offset, 0.0f) / most_code);
  g.scale = f16_to_f32(g.scale_bits);
  return g;
}

TWILL_KERNEL_INLINE int code_of(float x, const group_scale& g) {
  const float code = g.scale > 0 ? (x - g.offset) / g.scale : 0.0f;
  return static_cast<int>(::fmaxf(::fminf(code + 0.5f, most_code), 0.0f)); // a NaN becomes 15
}

/// The places of one group (up to 64 dimensions of a head) in the packed and in the unpacked KV
/// block. A byte holds the codes of dimensions d (low 4 bits) and d + dims / 2 (high 4 bits) of one
/// position. Packed keys of a group have the shape (block_tokens / P, dims / 2, P), where P = 16 or
/// 8 positions lie side by side; packed values have the shape (block_tokens, dims / 2).
struct group_place {
  unsigned char* codes;
  std::uint16_t *offsets, *scales; // (block_tokens)
  std::int64_t first;              ///< element of dimension 0, position 0
  int dims;
  long by_dim, by_position; ///< elements from one dimension, or position, to the next
};

struct kv4_geometry {
  kv_layer kv;
  unsigned char* packed;
  std::int64_t stride;
  std::int32_t first_block;

  /// How many positions of keys are packed side by side.
  TWILL_KERNEL_MEMBER int side_by_side() const { return kv.block_tokens % 16 == 0 ? 16 : 8; }
  TWILL_KERNEL_MEMBER int groups() const { return (kv.head_dim + kv4_group - 1) / kv4_group; }
  TWILL_KERNEL_MEMBER std::int64_t head_bytes() const {
    return std::int64_t{kv.block_tokens} * (kv.head_dim / 2 + 4 * groups());
  }

  /// The group of work item i. Items are numbered in the order (blocks, keys or values, heads,
  /// groups), the last fastest.
  TWILL_KERNEL_MEMBER group_place place(long i, bool& values) const {
    const int group = static_cast<int>(i % groups());
    i /= groups();
    const int head = static_cast<int>(i % kv.n_kv_heads);
    i /= kv.n_kv_heads;
    values = i % 2 == 1;
    const std::int64_t block = first_block + i / 2;
    const int first_dim = group * kv4_group;
    group_place p;
    p.dims = first_dim + kv4_group < kv.head_dim ? kv4_group : kv.head_dim - first_dim;
    unsigned char* of_head =
        packed + block * stride + ((values ? kv.n_kv_heads : 0) + head) * head_bytes();
    p.codes = of_head + std::int64_t{first_dim} * kv.block_tokens / 2;
    p.offsets = reinterpret_cast<std::uint16_t*>(of_head +
                                                 std::int64_t{kv.head_dim} * kv.block_tokens / 2) +
                std::int64_t{group} * kv.block_tokens;
    p.scales = p.offsets + std::int64_t{groups()} * kv.block_tokens;
    p.by_dim = values ? 1 : kv.block_tokens;
    p.by_position = values ? kv.head_dim : 1;
    p.first = block_at(kv, block) + std::int64_t{head} * kv.block_tokens * kv.head_dim +
              first_dim * p.by_dim;
    return p;
  }
};

/// Quantizes low[i] and high[i] to 4-bit codes and packs them into the low and the high half of
/// byte i. The inputs are rows of f32, so that compilers vectorise the loop.
TWILL_KERNEL_INLINE void pack_row(unsigned char* __restrict codes, const float* __restrict low,
                                  const float* __restrict high,
                                  const group_scale* __restrict scales, int by_scale, int n) {
  for (int i = 0; i < n; ++i)
    codes[i] = static_cast<unsigned char>(code_of(low[i], scales[i * by_scale]) |
                                          code_of(high[i], scales[i * by_scale]) << 4);
}

/// Packs one group (up to 64 dimensions) of the keys of `Positions` positions from t0 on. The keys
/// are first copied to a local array, of which each row holds one dimension of all these positions.
/// Each position has its own scale.
template <int Positions, class Element>
TWILL_KERNEL_INLINE void pack_keys(const group_place& p, const Element* from, int t0) {
  float x[kv4_group][Positions];
  float low[Positions], high[Positions];
  for (int d = 0; d < p.dims; ++d)
    for (int t = 0; t < Positions; ++t)
      x[d][t] = widen(from[d * p.by_dim + t0 + t]);
  for (int t = 0; t < Positions; ++t)
    low[t] = high[t] = x[0][t];
  for (int d = 1; d < p.dims; ++d)
    for (int t = 0; t < Positions; ++t) {
      low[t] = ::fminf(low[t], x[d][t]);
      high[t] = ::fmaxf(high[t], x[d][t]);
    }
  group_scale scales[Positions];
  for (int t = 0; t < Positions; ++t) {
    scales[t] = scale_of(low[t], high[t]);
    p.offsets[t0 + t] = scales[t].offset_bits;
    p.scales[t0 + t] = scales[t].scale_bits;
  }
  const int half = p.dims / 2;
  for (int d = 0; d < half; ++d)
    pack_row(p.codes + t0 * half + d * Positions, x[d], x[d + half], scales, 1, Positions);
}

template <int Positions, class Element>
TWILL_KERNEL_INLINE void unpack_keys(const group_place& p, Element* to, int t0) {
  float offset[Positions], scale[Positions];
  for (int t = 0; t < Positions; ++t) {
    offset[t] = f16_to_f32(p.offsets[t0 + t]);
    scale[t] = f16_to_f32(p.scales[t0 + t]);
  }
  const int half = p.dims / 2;
  for (int d = 0; d < half; ++d) {
    const unsigned char* codes = p.codes + t0 * half + d * Positions;
    float low[Positions], high[Positions];
    for (int t = 0; t < Positions; ++t) {
      low[t] = ::fmaf(static_cast<float>(codes[t] & 15), scale[t], offset[t]);
      high[t] = ::fmaf(static_cast<float>(codes[t] >> 4), scale[t], offset[t]);
    }
    store_row(to + d * p.by_dim + t0, low, Positions);
    store_row(to + (d + half) * p.by_dim + t0, high, Positions);
  }
}

/// Packs the values of one position, whose dimensions lie side by side.
template <class Element>
TWILL_KERNEL_INLINE void pack_value(const group_place& p, const Element* from, int t) {
  float x[kv4_group];
  from += t * p.by_position;
  for (int d = 0; d < p.dims; ++d)
    x[d] = widen(from[d]);
  float low = x[0], high = x[0];
  for (int d = 1; d < p.dims; ++d) {
    low = ::fminf(low, x[d]);
    high = ::fmaxf(high, x[d]);
  }
  const group_scale scale = scale_of(low, high);
  p.offsets[t] = scale.offset_bits;
  p.scales[t] = scale.scale_bits;
  const int half = p.dims / 2;
  pack_row(p.codes + t * half, x, x + half, &scale, 0, half);
}

template <class Element>
TWILL_KERNEL_INLINE void unpack_value(const group_place& p, Element* to, int t) {
  const float offset = f16_to_f32(p.offsets[t]), scale = f16_to_f32(p.scales[t]);
  const int half = p.dims / 2;
  const unsigned char* codes = p.codes + t * half;
  float x[kv4_group];
  for (int d = 0; d < half; ++d) {
    x[d] = ::fmaf(static_cast<float>(codes[d] & 15), scale, offset);
    x[d + half] = ::fmaf(static_cast<float>(codes[d] >> 4), scale, offset);
  }
  store_row(to + t * p.by_position, x, p.dims);
}

enum class direction : std::uint8_t { pack, unpack };

/// Packs or unpacks one group (up to 64 dimensions of one head in one KV block), on the host: rows
/// are copied to local arrays, so that compilers vectorise the loops over them.
template <class Element, direction Direction>
struct group_item {
  kv4_geometry at;

  TWILL_KERNEL_MEMBER void operator()(const long i) const {
    bool values = false;
    const group_place p = at.place(i, values);
    Element* block = static_cast<Element*>(values ? at.kv.values : at.kv.keys) + p.first;
    if (values) {
      for (int t = 0; t < at.kv.block_tokens; ++t)
        if constexpr (Direction == direction::pack)
          pack_value(p, block, t);
        else
          unpack_value(p, block, t);
    } else if (at.side_by_side() == 16) {
      keys<16>(p, block);
    } else {
      keys<8>(p, block);
    }
  }

  template <int Positions>
  TWILL_KERNEL_MEMBER void keys(const group_place& p, Element* block) const {
    for (int t = 0; t < at.kv.block_tokens; t += Positions)
      if constexpr (Direction == direction::pack)
        pack_keys<Positions>(p, block, t);
      else
        unpack_keys<Positions>(p, block, t);
  }
};

/// Packs or unpacks one position of one group, on a GPU: work item i is position i % block_tokens
/// of group i / block_tokens. The kernel uses no local array, which a GPU would keep in memory, not
/// in registers; packing reads the position's elements twice instead. The results have the same
/// bits as those of group_item, the host's kernel.
template <class Element, direction Direction>
struct position_item {
  kv4_geometry at;

  TWILL_KERNEL_MEMBER void operator()(const long i) const {
    const long group = i / at.kv.block_tokens;
    const int t = static_cast<int>(i - group * at.kv.block_tokens);
    bool values = false;
    const group_place p = at.place(group, values);
    const int half = p.dims / 2;
    const int width = values ? 1 : at.side_by_side(); // positions side by side
    unsigned char* codes = p.codes + t / width * width * half + t % width;
    Element* x =
        static_cast<Element*>(values ? at.kv.values : at.kv.keys) + p.first + t * p.by_position;
    if constexpr (Direction == direction::pack)
      pack(p, x, codes, width, t);
    else
      unpack(p, x, codes, width, t);
  }

  TWILL_KERNEL_MEMBER static void pack(const group_place& p, const Element* x, unsigned char* codes,
                                       int width, int t) {
    float low = widen(x[0]), high = low;
    for (int d = 1; d < p.dims; ++d) {
      const float one = widen(x[d * p.by_dim]);
      low = ::fminf(low, one);
      high = ::fmaxf(high, one);
    }
    const group_scale scale = scale_of(low, high);
    p.offsets[t] = scale.offset_bits;
    p.scales[t] = scale.scale_bits;
    const int half = p.dims / 2;
    for (int d = 0; d < half; ++d)
      codes[d * width] =
          static_cast<unsigned char>(code_of(widen(x[d * p.by_dim]), scale) |
                                     code_of(widen(x[(d + half) * p.by_dim]), scale) << 4);
  }

  TWILL_KERNEL_MEMBER static void unpack(const group_place& p, Element* x,
                                         const unsigned char* codes, int width, int t) {
    const float offset = f16_to_f32(p.offsets[t]), scale = f16_to_f32(p.scales[t]);
    const int half = p.dims / 2;
    for (int d = 0; d < half; ++d) {
      const unsigned char both = codes[d * width];
      const float low = ::fmaf(static_cast<float>(both & 15), scale, offset);
      const float high = ::fmaf(static_cast<float>(both >> 4), scale, offset);
      store_row(x + d * p.by_dim, &low, 1);
      store_row(x + (d + half) * p.by_dim, &high, 1);
    }
  }
};

/// Calls f with the kernel object for the KV's type. Item is group_item or position_item.
template <template <class, direction> class Item, direction Direction, class F>
void with_kv4_kernel(const kv4_geometry& at, const F& f) {
  with_kv_element(at.kv.type, [&](auto element) {
    using Element = decltype(element);
    if constexpr (!kv_element<Element>::scaled) f(Item<Element, Direction>{at});
  });
}

} // namespace twill::gpu::detail
