// Loading of K and V tiles and the two small matrix products of attention.
//
// Included by the attention_*.cpp files only; internal linkage, see simd.hpp. Sums run over
// head_dim (scores) and over positions (values) one by one in ascending order, in every blocking of
// rows.
#pragma once

#include "gpu/detail/half.hpp"
#include "gpu/host/attention_kernels.hpp"
#include "gpu/host/simd.hpp"

namespace twill::gpu::host {
namespace {

constexpr int tile_len = attention_tile;

inline int round_up(int n, int step) {
  return (n + step - 1) / step * step;
}

struct half_f16 {
  std::uint16_t bits;
};
struct half_bf16 {
  std::uint16_t bits;
};
/// A code of i8 KV; its token's scale is applied to the score or the softmax weight instead.
struct code_i8 {
  std::int8_t bits;
};

inline float widen(float x) {
  return x;
}
inline float widen(half_bf16 h) {
  return detail::bf16_to_f32(h.bits);
}
inline float widen(code_i8 c) {
  return static_cast<float>(c.bits);
}
inline float widen(half_f16 h) {
  return detail::f16_to_f32(h.bits);
}

#ifdef __AVX2__
inline __m256 load8(const float* p) {
  return _mm256_loadu_ps(p);
}
inline __m256 load8(const half_f16* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline __m256 load8(const half_bf16* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
inline __m256 load8(const code_i8* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

/// Eight rows of eight, transposed, to `to` with tile_len floats between rows.
template <class Element>
inline void transpose8(const Element* const* rows, int d, float* to) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i)
    r[i] = load8(rows[i] + d);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * tile_len, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * tile_len, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
#endif

/// Asks for rows [begin, end) ahead of their use. Blocks lie anywhere, so the processor's own
/// prefetchers lose track at each one; without this, decoding waits for every block.
template <class Element>
inline void prefetch_rows(const Element* const* rows, int begin, int end, int head_dim) {
  const int bytes = head_dim * static_cast<int>(sizeof(Element));
  for (int j = begin; j < end; ++j)
    for (int at = 0; at < bytes; at += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(rows[j]) + at, 0, 2);
}

/// Keys of n positions (a multiple of 8), transposed. // to: (head_dim, tile_len)
template <class Element>
inline void transpose_keys(const Element* const* rows, int n, int head_dim, float* to) {
  int whole = 0;
#ifdef __AVX2__
  whole = head_dim / 8 * 8;
  for (int j = 0; j < n; j += 8)
    for (int d = 0; d < whole; d += 8)
      transpose8(rows + j, d, to + d * tile_len + j);
#endif
  for (int d = whole; d < head_dim; ++d)
    for (int j = 0; j < n; ++j)
      to[d * tile_len + j] = widen(rows[j][d]);
}

/// Values of positions [begin, end) as f32 rows of `stride` floats, zero past head_dim.
template <class Element>
inline void widen_values(const Element* const* rows, int begin, int end, int head_dim, int stride,
                         float* to) {
  for (int j = begin; j < end; ++j) {
    float* row = to + j * stride;
    int d = 0;
#ifdef __AVX2__
    for (; d + 8 <= head_dim; d += 8)
      _mm256_storeu_ps(row + d, load8(rows[j] + d));
#endif
    for (; d < head_dim; ++d)
      row[d] = widen(rows[j][d]);
    for (; d < stride; ++d)
      row[d] = 0;
  }
}

/// scores[r][j] = sum over d of q[r][d] * keys[d][j], for Rows rows and Vectors vectors of j.
template <int Rows, int Vectors>
inline void score_block(const float* q, int q_stride, const float* keys, int head_dim,
                        float* scores) {
  vf sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = vf{};
  for (int d = 0; d < head_dim; ++d) {
    vf key[Vectors];
    for (int v = 0; v < Vectors; ++v)
      key[v] = load(keys + d * tile_len + v * lanes);
    for (int r = 0; r < Rows; ++r) {
      const vf query = splat(q[r * q_stride + d]);
      for (int v = 0; v < Vectors; ++v)
        sum[r][v] = fma_of(query, key[v], sum[r][v]);
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      store(scores + r * tile_len + v * lanes, sum[r][v]);
}

/// Vectors side by side: enough independent sums to hide the latency of a multiply-add, no more
/// than the registers hold.
template <int Rows>
constexpr int vectors_for = lanes == 16 || Rows <= 3 ? 4 : 2;

/// Scores of Rows rows against the first n positions (a multiple of 16).
template <int Rows>
inline void score_rows(const float* q, int q_stride, const float* keys, int n, int head_dim,
                       float* scores) {
  constexpr int wide = vectors_for<Rows>;
  int j = 0;
  for (; j + wide * lanes <= n; j += wide * lanes)
    score_block<Rows, wide>(q, q_stride, keys + j, head_dim, scores + j);
  for (; j < n; j += lanes)
    score_block<Rows, 1>(q, q_stride, keys + j, head_dim, scores + j);
}

/// acc[r][:] += sum over j in [begin, end) of weights[r][j] * values[j][:], Vectors vectors wide.
template <int Rows, int Vectors>
inline void value_block(const float* weights, const float* const* values, int begin, int end,
                        int column, float* acc, int acc_stride) {
  vf sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = load(acc + r * acc_stride + column + v * lanes);
  for (int j = begin; j < end; ++j) {
    const float* row = values[j] + column;
    vf value[Vectors];
    for (int v = 0; v < Vectors; ++v)
      value[v] = load(row + v * lanes);
    for (int r = 0; r < Rows; ++r) {
      const vf weight = splat(weights[r * tile_len + j]);
      for (int v = 0; v < Vectors; ++v)
        sum[r][v] = fma_of(weight, value[v], sum[r][v]);
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      store(acc + r * acc_stride + column + v * lanes, sum[r][v]);
}

template <int Rows>
inline void value_rows(const float* weights, const float* const* values, int begin, int end,
                       int width, float* acc, int acc_stride) {
  if (begin >= end) return;
  constexpr int wide = vectors_for<Rows>;
  int d = 0;
  for (; d + wide * lanes <= width; d += wide * lanes)
    value_block<Rows, wide>(weights, values, begin, end, d, acc, acc_stride);
  for (; d < width; d += lanes)
    value_block<Rows, 1>(weights, values, begin, end, d, acc, acc_stride);
}

} // namespace
} // namespace twill::gpu::host
