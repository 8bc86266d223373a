// The kernels of rope.hpp, for any backend.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gpu/attention/kv_element.hpp"
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

/// cos(x) and sin(x) for |x| < 2^31, each within 1e-7. GPU kernels use cosine_and_sine_of() instead
/// of CUDA's own functions, which reduce large angles with a local array in memory.
struct cosine_and_sine {
  float cos, sin;
};
TWILL_KERNEL_INLINE cosine_and_sine cosine_and_sine_of(float x) {
  // x = turns * pi / 2 + r. Pi / 2 is the sum of two doubles.
  const double turns = ::rint(static_cast<double>(x) * 0.63661977236758134308);
  const auto r = static_cast<float>(::fma(
      -turns, 6.123233995736766e-17, ::fma(-turns, 1.5707963267948966, static_cast<double>(x))));
  // Polynomials for |r| <= pi / 4, from the Cephes library.
  const float z = r * r;
  float s = ::fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = ::fmaf(s, z, -1.6666654611e-1f);
  s = ::fmaf(s * z, r, r);
  float c = ::fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = ::fmaf(c, z, 4.166664568298827e-2f);
  c = ::fmaf(c * z, z, ::fmaf(-0.5f, z, 1.0f));
  const auto quarter = static_cast<std::int64_t>(turns) & 3;
  const float cos = quarter % 2 == 0 ? c : s;
  const float sin = quarter % 2 == 0 ? s : c;
  return {quarter == 1 || quarter == 2 ? -cos : cos, quarter >= 2 ? -sin : sin};
}

/// The version of angle_item for a GPU.
struct chip_angle_item {
  angle_item all;

  TWILL_KERNEL_MEMBER void operator()(const long i) const {
    const long row = i / all.half;
    const long d = i - row * all.half;
    const cosine_and_sine of =
        cosine_and_sine_of(static_cast<float>(all.positions[row]) * all.inv_freq[d]);
    all.cos[row * all.cos_stride + d] = all.magnitude * of.cos;
    all.sin[row * all.sin_stride + d] = all.magnitude * of.sin;
  }
};

/// Rotates the queries of a step in place, rotates its keys, and stores its keys and values. The
/// host processes a whole head at a time in loops that compilers vectorise. A GPU processes one
/// dimension at a time without local arrays, since these would lie in memory and not in registers.
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

  /// Rotates pair `i` of [0, half) of a head.
  TWILL_KERNEL_MEMBER void rotate_one(float* x, long row, int i) const {
    const int first = rope == rope_kind::half_split ? i : 2 * i;
    const int second = rope == rope_kind::half_split ? i + half : 2 * i + 1;
    rotate_pair(x[first], x[second], cos[row * cos_stride + i], sin[row * sin_stride + i]);
  }

  TWILL_KERNEL_MEMBER float* query_of(long row, int head) const {
    return q + row * q_stride + long{head} * kv.head_dim;
  }
  TWILL_KERNEL_MEMBER float* key_of(long row, int head) const {
    return k + row * k_stride + long{head} * kv.head_dim;
  }
  TWILL_KERNEL_MEMBER const float* value_of(long row, int head) const {
    return v + row * v_stride + long{head} * kv.head_dim;
  }

  /// The factor by which a row's queries are multiplied after the rotation.
  TWILL_KERNEL_MEMBER float query_factor(long row) const {
    const int seen = positions[row] + 1;
    if (log_n_length == 0 || seen <= log_n_length) return 1.0f;
    return ::logf(static_cast<float>(seen)) / ::logf(static_cast<float>(log_n_length));
  }

  TWILL_KERNEL_MEMBER void query(long row, int head) const {
    float* x = query_of(row, head);
    if (rope != rope_kind::none) rotate(x, row);
    const float factor = query_factor(row);
    if (factor == 1.0f) return;
    for (int d = 0; d < kv.head_dim; ++d)
      x[d] *= factor;
  }

  /// Stores x as element `at`. i8 codes are computed with `inverse`, which is i8_steps::inverse.
  TWILL_KERNEL_MEMBER void store_at(void* to, std::int64_t at, float x, float inverse) const {
    with_kv_element(kv.type, [=](auto element) {
      store_one(static_cast<decltype(element)*>(to)[at], x, inverse);
    });
  }

  template <class Element>
  TWILL_KERNEL_MEMBER void spread(const Element* from, std::int64_t first) const {
    Element* to = static_cast<Element*>(kv.keys) + first;
    for (int d = 0; d < kv.head_dim; ++d)
      to[std::int64_t{d} * kv.block_tokens] = from[d];
  }

  /// Stores a key, whose dimensions lie block_tokens elements apart.
  TWILL_KERNEL_MEMBER void store_key(const float* x, std::int64_t first,
                                     std::int64_t at_scale) const {
    with_kv_element(kv.type, [&](auto element) {
      using Element = decltype(element);
      if constexpr (std::is_same_v<Element, float>) {
        spread(x, first);
      } else {
        Element row[max_head_dim];
        const float scale = store_row(row, x, kv.head_dim);
        if constexpr (kv_element<Element>::scaled) kv.key_scales[at_scale] = scale;
        spread(row, first);
      }
    });
  }

  TWILL_KERNEL_MEMBER void store_value(const float* x, std::int64_t at,
                                       std::int64_t at_scale) const {
    with_kv_element(kv.type, [&](auto element) {
      using Element = decltype(element);
      const float scale = store_row(static_cast<Element*>(kv.values) + at, x, kv.head_dim);
      if constexpr (kv_element<Element>::scaled) kv.value_scales[at_scale] = scale;
    });
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

  /// key_at(), value_at() and scale_at() give the indices of the first element of a head's key, of
  /// the first element of its value, and of its scale, at the position of `at`.
  TWILL_KERNEL_MEMBER std::int64_t key_at(const place& at, int head) const {
    return at.elements + std::int64_t{head} * kv.block_tokens * kv.head_dim + at.offset;
  }
  TWILL_KERNEL_MEMBER std::int64_t value_at(const place& at, int head) const {
    return at.elements + (std::int64_t{head} * kv.block_tokens + at.offset) * kv.head_dim;
  }
  TWILL_KERNEL_MEMBER std::int64_t scale_at(const place& at, int head) const {
    return at.scales + std::int64_t{head} * kv.block_tokens + at.offset;
  }

  TWILL_KERNEL_MEMBER void key_and_value(long row, int head, const place& at) const {
    float* key = key_of(row, head);
    if (rope != rope_kind::none) rotate(key, row);
    store_key(key, key_at(at, head), scale_at(at, head));
    store_value(value_of(row, head), value_at(at, head), scale_at(at, head));
  }
};

} // namespace twill::gpu::detail
