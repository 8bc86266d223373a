// Attention's two products in bf16: queries, keys, softmax weights and values are rounded to bf16
// and multiplied in pairs, while sums, maxima and the softmax stay in f32, as FlashAttention does
// on tensor cores (Dao et al. 2022). Codes of i8 KV are exact in bf16.
//
// A pair consists of two neighbours along the dimension that is summed: two dimensions of a key, or
// the values of two positions. The first element of a pair has an even index. Which positions form
// a pair thus does not depend on the batch. If a row sees only one position of a pair, the other
// one has the weight zero and adds nothing. So a row's bits depend only on its own sequence.
//
// Only attention_avx512_bf16.cpp may include this header. Everything has internal linkage,
// for the reason that gpu/host/simd.hpp gives.
#pragma once

#include "gpu/attention/host/paged_kv_view.hpp"

namespace twill::gpu::host {
namespace {

/// Adds to each lane of `sum` the two products of a pair.
inline vf dot_pairs(vf sum, vi a, vi b) {
  return reinterpret_cast<vf>(
      _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), (__m512bh)(__m512i)a, (__m512bh)(__m512i)b));
}
inline vi load_words(const std::uint32_t* p) {
  vi v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store_words(std::uint32_t* p, vi v) {
  __builtin_memcpy(p, &v, sizeof v);
}
inline vi splat_pair(const std::uint16_t* p) {
  std::int32_t both;
  __builtin_memcpy(&both, p, sizeof both);
  return splat_int(both);
}
/// Interleaves the lower and the upper half of `v`: each lane gets 16 bits of both.
inline vi interleave(__m512i v) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return reinterpret_cast<vi>(_mm512_permutexvar_epi16(order, v));
}
inline vi round_pairs(vf first, vf second) {
  return interleave((__m512i)_mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second),
                                                 reinterpret_cast<__m512>(first)));
}
inline void round_16(std::uint16_t* to, vf v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      (__m256i)_mm512_cvtneps_pbh(reinterpret_cast<__m512>(v)));
}

/// exp(x) with a relative error below 2e-5 for x in [-87, 88]; exactly 1 for x = 0, and 0 for x far
/// below -87. With x / ln 2 = n + r and |r| <= 1/2, the result is 2^n times a polynomial for 2^r,
/// which was fitted at Chebyshev points and is 1 at r = 0.
inline vf exp_near(vf x) {
  const vf low = splat(-200.0f); // 2^n is 0 from here on; minus infinity would have no r
  const vf t = (x < low ? low : x) * 1.44269504f;
  const __m512 n =
      _mm512_roundscale_ps(reinterpret_cast<__m512>(t), 8); // to nearest, raising no exception flag
  const vf r = t - reinterpret_cast<vf>(n);
  vf p = fma_of(r, splat(0.00966637395f), splat(0.0558383428f));
  p = fma_of(p, r, splat(0.240223482f));
  p = fma_of(p, r, splat(0.693136752f));
  p = fma_of(p, r, splat(1.0f));
  return reinterpret_cast<vf>(_mm512_scalef_ps(reinterpret_cast<__m512>(p), n));
}

/// Loads 16 pairs; pair i is element i at `first` and element i at `second`.
template <class Element>
inline vi load_pairs(const Element* first, const Element* second) {
  return round_pairs(load_wide(first), load_wide(second));
}
inline vi load_pairs(const kv_bf16* first, const kv_bf16* second) {
  const auto half = [](const kv_bf16* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  };
  return interleave(_mm512_inserti64x4(_mm512_castsi256_si512(half(first)), half(second), 1));
}
inline std::uint16_t round_one(float x) {
  return detail::f32_to_bf16(x);
}
template <class Element>
inline std::uint32_t pair_of(Element first, Element second) {
  return static_cast<std::uint32_t>(round_one(widen(second))) << 16 | round_one(widen(first));
}

/// A tile's pairs of keys, read directly from the KV blocks.
template <class Element>
struct key_pairs_in_place {
  keys_in_place<Element> keys;
  vi get(int pair, int v) const {
    const Element* at = keys.at[v] + 2 * pair * keys.stride;
    return load_pairs(at, at + keys.stride);
  }
};
/// A tile's pairs of keys, read from a packed copy. // (head_dim / 2, tile_len)
struct key_pairs_packed {
  const std::uint32_t* data;
  vi get(int pair, int v) const { return load_words(data + pair * tile_len + v * lanes); }
};

/// Pairs of values of neighbouring positions, read directly from the KV blocks.
template <class Element>
struct value_pairs_in_place {
  const Element* const* rows;
  vi get(int pair, int column) const {
    return load_pairs(rows[2 * pair] + column, rows[2 * pair + 1] + column);
  }
};
/// Pairs of values of neighbouring positions, read from a packed copy. // (tile_len / 2, width)
struct value_pairs_packed {
  const std::uint32_t* data;
  int width;
  vi get(int pair, int column) const { return load_words(data + pair * width + column); }
};

/// to[r][v] = sum over pairs [begin, end) of a[r][pair] * b(pair, v); the sum is added to `to`
/// where `onto` is set.
template <bool onto, int Rows, int Vectors, class B>
inline void pairs_vectors(const std::uint16_t* a, int a_stride, int begin, int end, const B& b,
                          float* to, int to_stride, tile_prefetch& ahead) {
  vf sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = onto ? load(to + r * to_stride + v * lanes) : vf{};
  for (int p = begin; p < end; ++p) {
    vi right[Vectors];
    for (int v = 0; v < Vectors; ++v)
      right[v] = b(p, v);
    ahead.step();
    for (int r = 0; r < Rows; ++r) {
      const vi left = splat_pair(a + r * a_stride + 2 * p);
      for (int v = 0; v < Vectors; ++v)
        sum[r][v] = dot_pairs(sum[r][v], left, right[v]);
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      store(to + r * to_stride + v * lanes, sum[r][v]);
}

/// pairs_vectors() over `vectors` vectors; b(pair, vector) gives the pairs of any of them.
template <bool onto, int Rows, class B>
inline void pairs_rows(const std::uint16_t* a, int a_stride, int begin, int end, const B& b,
                       int vectors, float* to, int to_stride, tile_prefetch& ahead) {
  int v = 0;
  for (; v + 4 <= vectors; v += 4)
    pairs_vectors<onto, Rows, 4>(
        a, a_stride, begin, end, [&](int p, int i) { return b(p, v + i); }, to + v * lanes,
        to_stride, ahead);
  for (; v < vectors; ++v)
    pairs_vectors<onto, Rows, 1>(
        a, a_stride, begin, end, [&](int p, int) { return b(p, v); }, to + v * lanes, to_stride,
        ahead);
}

class bf16_products {
public:
  explicit bf16_products(row_state& rows) : rows_(rows) {}

  void load_queries(const attention_work& w) {
    for (int row = 0; row < w.n_queries * w.n_heads; ++row) {
      const int t = row / w.n_heads;
      const float* from = w.q + t * w.q_stride + std::int64_t{row - t * w.n_heads} * w.head_dim;
      std::uint16_t* to = q_ + row * max_dim;
      int d = 0;
      for (; d + lanes <= w.head_dim; d += lanes)
        round_16(to + d, load(from + d) * splat(w.scale));
      for (; d < w.head_dim; ++d)
        to[d] = round_one(from[d] * w.scale);
      if (d % 2 == 1) to[d] = 0;
    }
  }

  /// Computes the scores of all rows for the first n positions (n is a multiple of 16) of a tile of
  /// 64 positions. Up to rows_at_once rows read the keys directly; more rows share a packed copy.
  template <class Element>
  void score_tile(const attention_work& w, int base, int begin, int end, int n) {
    const int rows = w.n_queries * w.n_heads;
    if (rows <= rows_at_once && begin == 0 && w.block_tokens % 16 == 0 && w.head_dim % 2 == 0)
      return scores_of(key_pairs_in_place<Element>{keys_of<Element>(w, base, n)}, rows, n,
                       w.head_dim);
    pack_keys<Element>(w, base, begin, end, n);
    scores_of(key_pairs_packed{keys_}, rows, n, w.head_dim);
  }

  /// The softmax weight of a score. It is then rounded to bf16, so exp_near() is accurate enough.
  static vf weight_of(vf score) { return exp_near(score); }
  void set_weights(int row, int j, vf weights) { round_16(weights_ + row * tile_len + j, weights); }
  void no_weights(int row) { __builtin_memset(weights_ + row * tile_len, 0, 2 * tile_len); }

  /// Adds the weighted values of positions [begin, end) of a tile of 64 positions to each row's
  /// sums. Positions that a row does not see have the weight 0. Positions outside [begin, end) may
  /// hold anything and are not read.
  template <class Element>
  void value_tile(const attention_work& w, int base, int begin, int end, int width) {
    static const Element nothing[max_dim] = {};
    const int rows = w.n_queries * w.n_heads;
    const Element* values[tile_len];
    values_of(w, base, begin, end, values);
    if (begin % 2 == 1) values[begin - 1] = nothing;
    if (end % 2 == 1) values[end] = nothing;
    const int first = begin / 2, last = (end + 1) / 2;
    if (width == w.head_dim && rows <= rows_at_once)
      return add_all(value_pairs_in_place<Element>{values}, rows, first, last, width);
    for (int p = first; p < last; ++p)
      pack_values(values[2 * p], values[2 * p + 1], w.head_dim, width, values_ + p * width);
    add_all(value_pairs_packed{values_, width}, rows, first, last, width);
  }

private:
  /// Packs the keys of positions [begin, end) in pairs of dimensions, with zeros elsewhere up to n.
  template <class Element>
  void pack_keys(const attention_work& w, int base, int begin, int end, int n) {
    const int pairs = (w.head_dim + 1) / 2;
    for (int p = 0; p < pairs; ++p) {
      for (int j = 0; j < begin; ++j)
        keys_[p * tile_len + j] = 0;
      for (int j = end; j < n; ++j)
        keys_[p * tile_len + j] = 0;
    }
    for_blocks<Element>(
        w, w.keys, base, begin, end, [&](const Element* block, int offset, int j, int count) {
          int i = 0;
          for (; w.head_dim % 2 == 0 && i + lanes <= count; i += lanes) {
            const Element* first = block + offset + i;
            for (int p = 0; p < pairs; ++p, first += 2 * w.block_tokens)
              store_words(keys_ + p * tile_len + j + i, load_pairs(first, first + w.block_tokens));
          }
          for (; i < count; ++i)
            for (int p = 0; p < pairs; ++p) {
              const Element* first = block + 2 * p * w.block_tokens + offset + i;
              const bool whole = 2 * p + 1 < w.head_dim;
              keys_[p * tile_len + j + i] =
                  pair_of(*first, whole ? first[w.block_tokens] : Element{});
            }
        });
  }

  template <class Element>
  static void pack_values(const Element* first, const Element* second, int head_dim, int width,
                          std::uint32_t* to) {
    int d = 0;
    for (; d + lanes <= head_dim; d += lanes)
      store_words(to + d, load_pairs(first + d, second + d));
    for (; d < head_dim; ++d)
      to[d] = pair_of(first[d], second[d]);
    for (; d < width; ++d)
      to[d] = 0;
  }

  template <class Keys>
  void scores_of(const Keys& keys, int rows, int n, int head_dim) {
    for (int row = 0; row < rows; row += rows_at_once)
      with_rows(rows - row, [&](auto r) {
        pairs_rows<false, decltype(r)::value>(
            q_ + row * max_dim, max_dim, 0, (head_dim + 1) / 2,
            [&](int p, int v) { return keys.get(p, v); }, n / lanes, rows_.scores + row * tile_len,
            tile_len, rows_.ahead);
      });
  }

  template <class Values>
  void add_all(const Values& values, int rows, int first, int last, int width) {
    for (int row = 0; row < rows; row += rows_at_once)
      with_rows(rows - row, [&](auto r) {
        pairs_rows<true, decltype(r)::value>(
            weights_ + row * tile_len, tile_len, first, last,
            [&](int p, int v) { return values.get(p, v * lanes); }, width / lanes,
            rows_.acc + row * width, width, rows_.ahead);
      });
  }

  row_state& rows_;
  alignas(64) std::uint16_t q_[max_rows * max_dim];          // (row, max_dim), scaled
  alignas(64) std::uint16_t weights_[max_rows * tile_len];   // (row, tile_len)
  alignas(64) std::uint32_t keys_[max_dim / 2 * tile_len];   // (head_dim / 2, tile_len)
  alignas(64) std::uint32_t values_[tile_len / 2 * max_dim]; // (tile_len / 2, width)
};

} // namespace
} // namespace twill::gpu::host
