// The two matrix products of attention, of a few rows with the keys or values of a tile of
// positions. A row here is one query head of one token.
//
// Only the attention_*.cpp files may include this header. Everything has internal linkage, for
// the reason that gpu/host/simd.hpp gives. Sums run over head_dim (for scores) or over positions
// (for values) one element at a time in ascending order, however many rows are multiplied together.
#pragma once

#include "gpu/attention/host/attention_kernels.hpp"
#include "gpu/attention/kv_element.hpp"
#include "gpu/detail/half.hpp"
#include "gpu/host/simd.hpp"

namespace twill::gpu::host {
namespace {

constexpr int tile_len = attention_tile;

inline int round_up(int n, int multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

inline float widen(float x) {
  return x;
}
inline float widen(kv_bf16 h) {
  return detail::bf16_to_f32(h.bits);
}
inline float widen(kv_i8 c) {
  return static_cast<float>(c.bits);
}
inline float widen(kv_f16 h) {
  return detail::f16_to_f32(h.bits);
}

/// `lanes` elements, widened.
inline vf load_wide(const float* p) {
  return load(p);
}
#if TWILL_LANES == 16 && defined(__AVX512F__)
inline vf load_wide(const kv_f16* p) {
  return reinterpret_cast<vf>(
      _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
}
inline vf load_wide(const kv_bf16* p) {
  const __m512i wide =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return reinterpret_cast<vf>(_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)));
}
inline vf load_wide(const kv_i8* p) {
  return reinterpret_cast<vf>(_mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))));
}
#elif TWILL_LANES == 8 && defined(__AVX2__)
inline vf load_wide(const kv_f16* p) {
  return reinterpret_cast<vf>(
      _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline vf load_wide(const kv_bf16* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return reinterpret_cast<vf>(_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
}
inline vf load_wide(const kv_i8* p) {
  return reinterpret_cast<vf>(_mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))));
}
#else
template <class Element>
inline vf load_wide(const Element* p) {
  vf v;
  for (int l = 0; l < lanes; ++l)
    v[l] = widen(p[l]);
  return v;
}
#endif

inline void prefetch_bytes(const void* data, long bytes) {
  for (long at = 0; at < bytes; at += 64)
    __builtin_prefetch(static_cast<const char*>(data) + at, 0, 2);
}

/// A tile's keys, read directly from the KV blocks: dimension d of vector v (of `lanes` positions)
/// begins at at[v] + d * stride.
template <class Element>
struct keys_in_place {
  const Element* at[tile_len / lanes];
  std::int64_t stride;
  vf get(int d, int v) const { return load_wide(at[v] + d * stride); }
};

/// A tile's keys, read from a copy widened to f32. // (head_dim, tile_len)
struct keys_widened {
  const float* data;
  vf get(int d, int v) const { return load(data + d * tile_len + v * lanes); }
};

/// Widens the values of positions [begin, end) to f32 rows of `stride` floats, zero past head_dim.
template <class Element>
inline void widen_values(const Element* const* rows, int begin, int end, int head_dim, int stride,
                         float* to) {
  for (int j = begin; j < end; ++j) {
    float* row = to + j * stride;
    int d = 0;
    for (; d + lanes <= head_dim; d += lanes)
      store(row + d, load_wide(rows[j] + d));
    for (; d < head_dim; ++d)
      row[d] = widen(rows[j][d]);
    for (; d < stride; ++d)
      row[d] = 0;
  }
}

/// scores[r][j] = sum over d of q[r][d] * keys[d][j], for Rows rows and Vectors vectors of
/// positions j from vector `first` on.
template <int Rows, int Vectors, class Keys>
inline void score_vectors(const float* q, int q_stride, const Keys& keys, int first, int head_dim,
                          float* scores) {
  vf sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = vf{};
  for (int d = 0; d < head_dim; ++d) {
    vf key[Vectors];
    for (int v = 0; v < Vectors; ++v)
      key[v] = keys.get(d, first + v);
    for (int r = 0; r < Rows; ++r) {
      const vf query = splat(q[r * q_stride + d]);
      for (int v = 0; v < Vectors; ++v)
        sum[r][v] = fma_of(query, key[v], sum[r][v]);
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      store(scores + r * tile_len + (first + v) * lanes, sum[r][v]);
}

/// The number of SIMD vectors of sums that are computed side by side: enough to hide the latency of
/// a multiply-add, but no more than fit the registers.
template <int Rows>
constexpr int vectors_for = lanes == 16 || Rows <= 3 ? 4 : 2;

/// Scores of Rows rows against the first n positions (a multiple of 16).
template <int Rows, class Keys>
inline void score_rows(const float* q, int q_stride, const Keys& keys, int n, int head_dim,
                       float* scores) {
  constexpr int wide = vectors_for<Rows>;
  const int vectors = n / lanes;
  int v = 0;
  for (; v + wide <= vectors; v += wide)
    score_vectors<Rows, wide>(q, q_stride, keys, v, head_dim, scores);
  for (; v < vectors; ++v)
    score_vectors<Rows, 1>(q, q_stride, keys, v, head_dim, scores);
}

/// acc[r][:] += sum over j in [begin, end) of weights[r][j] * values[j][:], Vectors vectors wide.
template <int Rows, int Vectors, class Element>
inline void value_vectors(const float* weights, const Element* const* values, int begin, int end,
                          int column, float* acc, int acc_stride) {
  vf sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = load(acc + r * acc_stride + column + v * lanes);
  for (int j = begin; j < end; ++j) {
    const Element* row = values[j] + column;
    vf value[Vectors];
    for (int v = 0; v < Vectors; ++v)
      value[v] = load_wide(row + v * lanes);
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

template <int Rows, class Element>
inline void value_rows(const float* weights, const Element* const* values, int begin, int end,
                       int width, float* acc, int acc_stride) {
  if (begin >= end) return;
  constexpr int wide = vectors_for<Rows>;
  int d = 0;
  for (; d + wide * lanes <= width; d += wide * lanes)
    value_vectors<Rows, wide>(weights, values, begin, end, d, acc, acc_stride);
  for (; d < width; d += lanes)
    value_vectors<Rows, 1>(weights, values, begin, end, d, acc, acc_stride);
}

} // namespace
} // namespace twill::gpu::host
