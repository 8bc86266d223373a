#include <cmath>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/detail/kv_place.hpp"
#include "gpu/detail/kv_rows.hpp"
#include "gpu/detail/launch.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/rows/rope.hpp"

namespace twill::gpu {

namespace {

struct angle_item {
  const std::int32_t* positions;
  const float* inv_freq;
  float magnitude;
  float* cos;
  float* sin;
  long half, cos_stride, sin_stride;

  KOKKOS_INLINE_FUNCTION void operator()(const long i) const {
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

  KOKKOS_INLINE_FUNCTION void rotate(float* x, long row) const {
    const float* c = cos + row * cos_stride;
    const float* s = sin + row * sin_stride;
    if (rope == rope_kind::half_split)
      detail::rotate_halves(x, c, s, half);
    else
      detail::rotate_pairs(x, c, s, half);
  }

  KOKKOS_INLINE_FUNCTION void query(long row, int head) const {
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
  KOKKOS_INLINE_FUNCTION void spread(const Element* from, std::int64_t first) const {
    Element* to = static_cast<Element*>(kv.keys) + first;
    for (int d = 0; d < kv.head_dim; ++d)
      to[std::int64_t{d} * kv.block_tokens] = from[d];
  }

  /// A key's dimensions lie block_tokens apart.
  KOKKOS_INLINE_FUNCTION void store_key(const float* x, std::int64_t first,
                                        std::int64_t scale_at) const {
    std::uint16_t halves[max_head_dim];
    std::int8_t codes[max_head_dim];
    switch (kv.type) {
    case dtype::f32:
      return spread(x, first);
    case dtype::f16:
      detail::store_f16(halves, x, kv.head_dim);
      return spread(halves, first);
    case dtype::bf16:
      detail::store_bf16(halves, x, kv.head_dim);
      return spread(halves, first);
    default:
      kv.key_scales[scale_at] = detail::store_i8(codes, x, kv.head_dim);
      spread(codes, first);
    }
  }

  KOKKOS_INLINE_FUNCTION void store_value(const float* x, std::int64_t at,
                                          std::int64_t scale_at) const {
    switch (kv.type) {
    case dtype::f32:
      return detail::store_f32(static_cast<float*>(kv.values) + at, x, kv.head_dim);
    case dtype::f16:
      return detail::store_f16(static_cast<std::uint16_t*>(kv.values) + at, x, kv.head_dim);
    case dtype::bf16:
      return detail::store_bf16(static_cast<std::uint16_t*>(kv.values) + at, x, kv.head_dim);
    default:
      kv.value_scales[scale_at] =
          detail::store_i8(static_cast<std::int8_t*>(kv.values) + at, x, kv.head_dim);
    }
  }

  /// Where the KV block of a row's position begins, and the position's offset in it.
  struct place {
    std::int64_t elements, scales;
    int offset; ///< within the block
  };
  KOKKOS_INLINE_FUNCTION place place_of(long row) const {
    const int position = positions[row];
    const int column = position / kv.block_tokens;
    const std::int64_t block = block_table[std::int64_t{sequence_of[row]} * max_blocks + column];
    return {detail::block_at(kv, block), detail::block_scales_at(kv, block),
            position - column * kv.block_tokens};
  }

  KOKKOS_INLINE_FUNCTION void key_and_value(long row, int head, const place& at) const {
    float* key = k + row * k_stride + long{head} * kv.head_dim;
    if (rope != rope_kind::none) rotate(key, row);
    const std::int64_t first = at.elements + std::int64_t{head} * kv.block_tokens * kv.head_dim;
    const std::int64_t scale_at = at.scales + std::int64_t{head} * kv.block_tokens + at.offset;
    store_key(key, first + at.offset, scale_at);
    store_value(v + row * v_stride + long{head} * kv.head_dim,
                first + std::int64_t{at.offset} * kv.head_dim, scale_at);
  }
};

/// A work item on a device: one query head of one row, or its key and value head together.
struct rope_store_head {
  rope_store all;

  KOKKOS_INLINE_FUNCTION void operator()(const long i) const {
    const long heads = all.n_heads + all.kv.n_kv_heads;
    const long row = i / heads;
    const int head = static_cast<int>(i - row * heads);
    if (head < all.n_heads) return all.query(row, head);
    all.key_and_value(row, head - all.n_heads, all.place_of(row));
  }
};

/// A work item on the host: one row, so that the block is looked up once for all heads.
struct rope_store_row {
  rope_store all;

  void operator()(const long row) const {
    for (int head = 0; head < all.n_heads; ++head)
      all.query(row, head);
    const rope_store::place at = all.place_of(row);
    for (int head = 0; head < all.kv.n_kv_heads; ++head)
      all.key_and_value(row, head, at);
  }
};

} // namespace

void rope_angles(device& dev, const ragged_batch& batch, const float* inv_freq,
                 std::int32_t rotary_dim, tensor_ref cos, tensor_ref sin, float magnitude) {
  const long half = rotary_dim / 2;
  TWILL_ASSERT(rotary_dim > 0 && rotary_dim % 2 == 0, "rope_angles: rotary_dim must be even");
  detail::check_matrix(cos, batch.n_tokens, half,
                       "rope_angles: cos must be (n_tokens, rotary_dim / 2) f32");
  detail::check_matrix(sin, batch.n_tokens, half,
                       "rope_angles: sin must be (n_tokens, rotary_dim / 2) f32");
  const angle_item item{batch.positions, inv_freq, magnitude,      cos.as<float>(),
                        sin.as<float>(), half,     cos.row_stride, sin.row_stride};
  detail::for_items(dev, "rope_angles", batch.n_tokens * half, 40, item);
}

void rope_and_store(device& dev, const ragged_batch& batch, const rope_store_args& args) {
  const kv_layer kv = detail::checked_kv(args.kv);
  const std::int64_t kv_cols = std::int64_t{kv.n_kv_heads} * kv.head_dim;
  detail::check_matrix(args.q, batch.n_tokens, std::int64_t{args.n_heads} * kv.head_dim,
                       "rope_and_store: q must be (n_tokens, n_heads * head_dim) f32");
  detail::check_matrix(args.k, batch.n_tokens, kv_cols,
                       "rope_and_store: k must be (n_tokens, n_kv_heads * head_dim) f32");
  detail::check_matrix(args.v, batch.n_tokens, kv_cols,
                       "rope_and_store: v must be (n_tokens, n_kv_heads * head_dim) f32");
  TWILL_ASSERT(args.log_n_length == 0 || args.log_n_length > 1,
               "rope_and_store: log_n_length must be 0 or above 1");
  const bool rotates = args.rope != rope_kind::none;
  if (rotates) {
    TWILL_ASSERT(args.rotary_dim > 0 && args.rotary_dim % 2 == 0 && args.rotary_dim <= kv.head_dim,
                 "rope_and_store: rotary_dim must be even and at most head_dim");
    detail::check_matrix(args.cos, batch.n_tokens, args.rotary_dim / 2,
                         "rope_and_store: cos must be (n_tokens, rotary_dim / 2) f32");
    detail::check_matrix(args.sin, batch.n_tokens, args.rotary_dim / 2,
                         "rope_and_store: sin must be (n_tokens, rotary_dim / 2) f32");
  }
  const rope_store all{args.q.as<float>(),
                       args.k.as<float>(),
                       args.v.as<float>(),
                       args.q.row_stride,
                       args.k.row_stride,
                       args.v.row_stride,
                       args.cos.as<const float>(),
                       args.sin.as<const float>(),
                       args.cos.row_stride,
                       args.sin.row_stride,
                       args.n_heads,
                       args.rotary_dim / 2,
                       args.rope,
                       args.log_n_length,
                       kv,
                       batch.positions,
                       batch.sequence_of,
                       batch.block_table,
                       batch.max_blocks};
  const long heads = args.n_heads + kv.n_kv_heads;
  if constexpr (detail::on_host)
    detail::for_host_items(dev, batch.n_tokens, heads * 2 * kv.head_dim, rope_store_row{all});
  else
    detail::for_items(dev, "rope_and_store", batch.n_tokens * heads, 2 * kv.head_dim,
                      rope_store_head{all});
}

} // namespace twill::gpu
