// The kernels of rope.hpp, for any backend.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/detail/kv_place.hpp"
#include "gpu/detail/kv_rows.hpp"
#include "gpu/rows/rope.hpp"

namespace twill::gpu::detail {

struct angle_item {
  const std::int32_t* positions;
  const float* inv_freq;
  float magnitude;
  float* cos;
  float* sin;
  long half, cos_stride, sin_stride;

  TWILL_KERNEL_MEMBER void operator()(const long i) const {
    const long row = i / half;
    const long d = i - row * half;
    const float angle = static_cast<float>(positions[row]) * inv_freq[d];
    cos[row * cos_stride + d] = magnitude * ::cosf(angle);
    sin[row * sin_stride + d] = magnitude * ::sinf(angle);
  }
};

/// Rotates the queries of a step in place, and rotates and stores its keys and values, head by
/// head.
struct rope_store {
  float *q, *k, *v;
  long q_stride, k_stride, v_stride;
  const float *cos, *sin;
  long cos_stride, sin_stride;
  int n_heads, half;
  rope_kind rope;
  int log_n_length;
  kv_layer kv;
  const std::int32_t *positions, *sequence_of, *block_table;
  int max_blocks;

  TWILL_KERNEL_MEMBER void rotate(float* x, long row) const {
    const float* c = cos + row * cos_stride;
    const float* s = sin + row * sin_stride;
    if (rope == rope_kind::half_split)
      rotate_halves(x, c, s, half);
    else
      rotate_pairs(x, c, s, half);
  }

  TWILL_KERNEL_MEMBER void query(long row, int head) const {
    float* x = q + row * q_stride + long{head} * kv.head_dim;
    if (rope != rope_kind::none) rotate(x, row);
    const int seen = positions[row] + 1;
    if (log_n_length == 0 || seen <= log_n_length) return;
    const float factor =
        ::logf(static_cast<float>(seen)) / ::logf(static_cast<float>(log_n_length));
    for (int d = 0; d < kv.head_dim; ++d)
      x[d] *= factor;
  }

  template <class Element>
  TWILL_KERNEL_MEMBER void spread(const Element* from, std::int64_t first) const {
    Element* to = static_cast<Element*>(kv.keys) + first;
    for (int d = 0; d < kv.head_dim; ++d)
      to[std::int64_t{d} * kv.block_tokens] = from[d];
  }

  /// A key's dimensions lie block_tokens apart.
  TWILL_KERNEL_MEMBER void store_key(const float* x, std::int64_t first,
                                     std::int64_t scale_at) const {
    std::uint16_t halves[max_head_dim];
    std::int8_t codes[max_head_dim];
    switch (kv.type) {
    case dtype::f32:
      return spread(x, first);
    case dtype::f16:
      store_f16(halves, x, kv.head_dim);
      return spread(halves, first);
    case dtype::bf16:
      store_bf16(halves, x, kv.head_dim);
      return spread(halves, first);
    default:
      kv.key_scales[scale_at] = store_i8(codes, x, kv.head_dim);
      spread(codes, first);
    }
  }

  TWILL_KERNEL_MEMBER void store_value(const float* x, std::int64_t at,
                                       std::int64_t scale_at) const {
    switch (kv.type) {
    case dtype::f32:
      return store_f32(static_cast<float*>(kv.values) + at, x, kv.head_dim);
    case dtype::f16:
      return store_f16(static_cast<std::uint16_t*>(kv.values) + at, x, kv.head_dim);
    case dtype::bf16:
      return store_bf16(static_cast<std::uint16_t*>(kv.values) + at, x, kv.head_dim);
    default:
      kv.value_scales[scale_at] =
          store_i8(static_cast<std::int8_t*>(kv.values) + at, x, kv.head_dim);
    }
  }

  /// Where the KV block of a row's position begins, and the position's offset in it.
  struct place {
    std::int64_t elements, scales;
    int offset; ///< within the block
  };
  TWILL_KERNEL_MEMBER place place_of(long row) const {
    const int position = positions[row];
    const int column = position / kv.block_tokens;
    const std::int64_t block = block_table[std::int64_t{sequence_of[row]} * max_blocks + column];
    return {block_at(kv, block), block_scales_at(kv, block), position - column * kv.block_tokens};
  }

  TWILL_KERNEL_MEMBER void key_and_value(long row, int head, const place& at) const {
    float* key = k + row * k_stride + long{head} * kv.head_dim;
    if (rope != rope_kind::none) rotate(key, row);
    const std::int64_t first = at.elements + std::int64_t{head} * kv.block_tokens * kv.head_dim;
    const std::int64_t scale_at = at.scales + std::int64_t{head} * kv.block_tokens + at.offset;
    store_key(key, first + at.offset, scale_at);
    store_value(v + row * v_stride + long{head} * kv.head_dim,
                first + std::int64_t{at.offset} * kv.head_dim, scale_at);
  }
};

} // namespace twill::gpu::detail
