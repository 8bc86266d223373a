#include <cmath>

#include "gpu/detail/kernel_math.hpp"
#include "gpu/detail/launch.hpp"
#include "gpu/ops/attention.hpp"

namespace twill::gpu {

namespace {

struct angle_item {
  const std::int32_t* positions;
  const float* inv_freq;
  float* cos;
  float* sin;
  long half, cos_stride, sin_stride;

  KOKKOS_INLINE_FUNCTION void operator()(const long i) const {
    const long row = i / half;
    const long d = i - row * half;
    const float angle = static_cast<float>(positions[row]) * inv_freq[d];
    cos[row * cos_stride + d] = ::cosf(angle);
    sin[row * sin_stride + d] = ::sinf(angle);
  }
};

/// One head of one row: a query head, or a key and value head together.
struct rope_store_item {
  float *q, *k, *v;
  long q_stride, k_stride, v_stride;
  const float *cos, *sin;
  long cos_stride, sin_stride;
  int n_heads, half;
  rope_kind rope;
  kv_layer kv;
  const std::int32_t *positions, *sequence_of, *block_table;
  int max_blocks;

  KOKKOS_INLINE_FUNCTION void rotate(float* x, long row) const {
    const float* c = cos + row * cos_stride;
    const float* s = sin + row * sin_stride;
    const int first_step = rope == rope_kind::half_split ? 1 : 2;
    const int partner = rope == rope_kind::half_split ? half : 1;
    for (int i = 0; i < half; ++i) {
      float* a = x + i * first_step;
      const float x0 = a[0];
      const float x1 = a[partner];
      a[0] = x0 * c[i] - x1 * s[i];
      a[partner] = x1 * c[i] + x0 * s[i];
    }
  }

  KOKKOS_INLINE_FUNCTION void store(void* arena, const float* x, std::int64_t at) const {
    if (kv.type == dtype::f32) {
      float* to = static_cast<float*>(arena) + at;
      for (int d = 0; d < kv.head_dim; ++d)
        to[d] = x[d];
    } else {
      for (int d = 0; d < kv.head_dim; ++d)
        detail::store_from_f32(arena, kv.type, at + d, x[d]);
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(const long i) const {
    const long slots = n_heads + kv.n_kv_heads;
    const long row = i / slots;
    const int slot = static_cast<int>(i - row * slots);
    if (slot < n_heads) {
      if (rope != rope_kind::none) rotate(q + row * q_stride + long{slot} * kv.head_dim, row);
      return;
    }
    const int head = slot - n_heads;
    float* key = k + row * k_stride + long{head} * kv.head_dim;
    if (rope != rope_kind::none) rotate(key, row);
    const int position = positions[row];
    const int column = position / kv.block_tokens;
    const std::int64_t block = block_table[std::int64_t{sequence_of[row]} * max_blocks + column];
    const std::int64_t at =
        ((block * kv.n_kv_heads + head) * kv.block_tokens + position - column * kv.block_tokens) *
        kv.head_dim;
    store(kv.keys, key, at);
    store(kv.values, v + row * v_stride + long{head} * kv.head_dim, at);
  }
};

void check_rows(const tensor_ref& t, std::int64_t rows, std::int64_t cols, const char* message) {
  TWILL_ASSERT(t.rank == 2 && t.type == dtype::f32 && t.shape[0] == rows && t.shape[1] == cols,
               message);
}

} // namespace

void rope_angles(device& dev, const ragged_batch& batch, const float* inv_freq,
                 std::int32_t rotary_dim, tensor_ref cos, tensor_ref sin) {
  const long half = rotary_dim / 2;
  TWILL_ASSERT(rotary_dim > 0 && rotary_dim % 2 == 0, "rope_angles: rotary_dim must be even");
  check_rows(cos, batch.n_tokens, half, "rope_angles: cos must be (n_tokens, rotary_dim / 2) f32");
  check_rows(sin, batch.n_tokens, half, "rope_angles: sin must be (n_tokens, rotary_dim / 2) f32");
  const angle_item item{batch.positions, inv_freq,      cos.as<float>(), sin.as<float>(), half,
                        cos.row_stride,  sin.row_stride};
  detail::for_items(dev, "rope_angles", batch.n_tokens * half, 40, item);
}

void rope_and_store(device& dev, const ragged_batch& batch, const rope_store_args& args) {
  const kv_layer& kv = args.kv;
  const std::int64_t kv_cols = std::int64_t{kv.n_kv_heads} * kv.head_dim;
  check_rows(args.q, batch.n_tokens, std::int64_t{args.n_heads} * kv.head_dim,
             "rope_and_store: q must be (n_tokens, n_heads * head_dim) f32");
  check_rows(args.k, batch.n_tokens, kv_cols,
             "rope_and_store: k must be (n_tokens, n_kv_heads * head_dim) f32");
  check_rows(args.v, batch.n_tokens, kv_cols,
             "rope_and_store: v must be (n_tokens, n_kv_heads * head_dim) f32");
  const bool rotates = args.rope != rope_kind::none;
  if (rotates) {
    TWILL_ASSERT(args.rotary_dim > 0 && args.rotary_dim % 2 == 0 && args.rotary_dim <= kv.head_dim,
                 "rope_and_store: rotary_dim must be even and at most head_dim");
    check_rows(args.cos, batch.n_tokens, args.rotary_dim / 2,
               "rope_and_store: cos must be (n_tokens, rotary_dim / 2) f32");
    check_rows(args.sin, batch.n_tokens, args.rotary_dim / 2,
               "rope_and_store: sin must be (n_tokens, rotary_dim / 2) f32");
  }
  const rope_store_item item{args.q.as<float>(),
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
                             kv,
                             batch.positions,
                             batch.sequence_of,
                             batch.block_table,
                             batch.max_blocks};
  detail::for_items(dev, "rope_and_store", long{batch.n_tokens} * (args.n_heads + kv.n_kv_heads),
                    4 * kv.head_dim, item);
}

} // namespace twill::gpu
