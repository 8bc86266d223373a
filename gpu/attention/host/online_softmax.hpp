// Computes attention of a few rows over paged KV with online softmax and masks, tile by tile and
// chunk by chunk (attention_kernels.hpp). The template parameter Products (attention_f32.hpp,
// attention_bf16.hpp) computes scores from queries and keys, and sums of weighted values.
//
// Only the attention_*.cpp files may include this header. Everything has internal linkage, for
// the reason that gpu/host/simd.hpp gives.
#pragma once

#include <type_traits>

#include "gpu/attention/host/attention_f32.hpp"

namespace twill::gpu::host {
namespace {

/// Loads the scales of the tile's codes, where the element type has them.
template <class Element>
inline void load_tile_scales(const attention_work& w, int base, int begin, int end, row_state& s) {
  s.scaled = kv_element<Element>::scaled;
  if (!s.scaled) return;
  load_scales(w, w.key_scales, base, begin, end, s.key_scales);
  load_scales(w, w.value_scales, base, begin, end, s.value_scales);
}

/// Applies the scales of int8 keys, the ALiBi slope and the mask to a row's scores of this tile.
/// `distance` is the tile's first position minus the query's.
inline void mask_row(row_state& s, int row, int n, float slope, float distance) {
  const int begin = s.begin[row], end = s.end[row];
  float* x = s.scores + row * tile_len;
  if (s.scaled) {
    for (int j = 0; j < n; j += lanes)
      store(x + j, load(x + j) * load(s.key_scales + j));
  }
  if (slope != 0) {
    for (int j = 0; j < n; j += lanes)
      store(x + j, fma_of(splat(slope), iota() + (distance + static_cast<float>(j)), load(x + j)));
  }
  for (int j = 0; j < begin; ++j)
    x[j] = minus_infinity;
  for (int j = end; j < n; ++j)
    x[j] = minus_infinity;
}

/// Raises a row's maximum, and rescales its earlier sums, which are relative to the old maximum.
inline void raise_max(row_state& s, int row, int width, float max) {
  if (s.sum[row] > 0) {
    const vf shrink = exp_of(splat(s.max[row] - max));
    float* acc = s.acc + row * width;
    for (int d = 0; d < width; d += lanes)
      store(acc + d, load(acc + d) * shrink);
    s.sum[row] *= shrink[0];
  }
  s.max[row] = max;
}

/// Turns the masked scores of R rows into softmax weights relative to their new maxima. Several
/// rows are interleaved, because the maximum, exponentials and sum of a single row depend on each
/// other and would stall the processor.
template <int R, class Products>
inline void softmax_rows(row_state& s, Products& products, int row, int n, int width) {
  const float* x = s.scores + row * tile_len;
  vf top[R];
  for (int r = 0; r < R; ++r)
    top[r] = load(x + r * tile_len);
  for (int j = lanes; j < n; j += lanes)
    for (int r = 0; r < R; ++r)
      top[r] = max_of(load(x + r * tile_len + j), top[r]);
  float max[R];
  for (int r = 0; r < R; ++r)
    max[r] = largest(top[r]);
  for (int r = 0; r < R; ++r)
    if (max[r] > s.max[row + r]) raise_max(s, row + r, width, max[r]);
  vf sum[R];
  for (int r = 0; r < R; ++r)
    sum[r] = vf{};
  for (int j = 0; j < n; j += lanes)
    for (int r = 0; r < R; ++r) {
      const vf weight = Products::weight_of(load(x + r * tile_len + j) - s.max[row + r]);
      products.set_weights(row + r, j, s.scaled ? weight * load(s.value_scales + j) : weight);
      sum[r] += weight;
    }
  for (int r = 0; r < R; ++r)
    s.sum[row + r] += sum_of(sum[r]);
}

/// Masks and softmax of all rows for one tile.
template <class Products>
inline void softmax_tile(const attention_work& w, int base, int n, int width, row_state& s,
                         Products& products) {
  constexpr int together = 4;
  const int rows = w.n_queries * w.n_heads;
  int first = 0; // first of the rows that wait to be interleaved
  for (int row = 0; row < rows; ++row) {
    if (s.begin[row] >= s.end[row]) {
      products.no_weights(row);
      for (; first < row; ++first)
        softmax_rows<1>(s, products, first, n, width);
      ++first;
      continue;
    }
    const int t = row / w.n_heads;
    const float slope = w.slopes == nullptr ? 0 : w.slopes[row - t * w.n_heads];
    mask_row(s, row, n, slope, static_cast<float>(base - w.positions[t]));
    if (row + 1 - first < together) continue;
    softmax_rows<together>(s, products, first, n, width);
    first = row + 1;
  }
  for (; first < rows; ++first)
    softmax_rows<1>(s, products, first, n, width);
}

/// Adds the keys and values of the tile of 64 positions at position `base` to the rows' results,
/// and prefetches the next tile if it begins before position `stop`.
template <class Element, class Products>
inline void run_tile(const attention_work& w, int base, int stop, int width, row_state& s,
                     Products& products) {
  int begin = tile_len, end = 0;
  for (int t = 0; t < w.n_queries; ++t) {
    const visible v = seen_by(w, t);
    const int from = v.begin > base ? v.begin - base : 0;
    const int to = v.end < base + tile_len ? v.end - base : tile_len;
    for (int h = 0; h < w.n_heads; ++h) {
      s.begin[t * w.n_heads + h] = from;
      s.end[t * w.n_heads + h] = to > from ? to : from;
    }
    if (from < to) {
      begin = from < begin ? from : begin;
      end = to > end ? to : end;
    }
  }
  if (begin >= end) return;
  const int n = round_up(end, 16);
  const int ahead = stop - base - tile_len;
  if (ahead > 0) s.ahead.start<Element>(w, base + tile_len, ahead < tile_len ? ahead : tile_len);
  load_tile_scales<Element>(w, base, begin, end, s);
  products.template score_tile<Element>(w, base, begin, end, n);
  softmax_tile(w, base, n, width, s, products);
  products.template value_tile<Element>(w, base, begin, end, width);
  s.ahead.finish();
}

/// Computes max, sum and acc of every row for one chunk.
template <class Element, class Products>
inline void run_chunk(const attention_work& w, int chunk, int width, row_state& s,
                      Products& products) {
  const int rows = w.n_queries * w.n_heads;
  for (int r = 0; r < rows; ++r) {
    s.max[r] = minus_infinity;
    s.sum[r] = 0;
  }
  for (int i = 0; i < rows * width; ++i)
    s.acc[i] = 0;
  const visible seen = seen_by_any(w);
  int base = chunk * attention_chunk;
  const int stop = base + attention_chunk < seen.end ? base + attention_chunk : seen.end;
  if (seen.begin > base) base = seen.begin / tile_len * tile_len;
  if (base < stop) s.ahead.start<Element>(w, base, stop - base < tile_len ? stop - base : tile_len);
  s.ahead.finish();
  for (; base < stop; base += tile_len)
    run_tile<Element>(w, base, stop, width, s, products);
}

/// Merges one chunk's result of a row into the row's merged result. Not inlined, so that both
/// callers get the same rounding.
__attribute__((noinline)) void merge_row(float chunk_max, float chunk_sum, const float* chunk,
                                         int head_dim, float& max, float& sum, float* merged) {
  if (!(chunk_sum != 0)) return;
  if (sum == 0) {
    max = chunk_max;
    sum = chunk_sum;
    for (int d = 0; d < head_dim; ++d)
      merged[d] = chunk[d];
    return;
  }
  const float top = chunk_max > max ? chunk_max : max;
  const float keep = exp_of(splat(max - top))[0];
  const float add = exp_of(splat(chunk_max - top))[0];
  max = top;
  sum = sum * keep + chunk_sum * add;
  for (int d = 0; d < head_dim; ++d)
    merged[d] = merged[d] * keep + chunk[d] * add;
}

__attribute__((noinline)) void finish_row(float sum, const float* merged, int head_dim,
                                          float* out) {
  const float share = sum == 0 ? 0 : 1.0f / sum;
  for (int d = 0; d < head_dim; ++d)
    out[d] = merged[d] * share;
}

template <class Element, class Products>
inline void run_whole(const attention_work& w) {
  row_state s;
  Products products(s);
  const int width = round_up(w.head_dim, 16);
  const int rows = w.n_queries * w.n_heads;
  const visible seen = seen_by_any(w);
  products.load_queries(w);
  const auto finish = [&](int r, float sum, const float* values) {
    const int t = r / w.n_heads;
    finish_row(sum, values, w.head_dim,
               w.out + t * w.out_stride + std::int64_t{r - t * w.n_heads} * w.head_dim);
  };
  const int first_chunk = seen.begin / attention_chunk;
  if (seen.end <= (first_chunk + 1) * attention_chunk) { // a single chunk needs no merge
    run_chunk<Element>(w, first_chunk, width, s, products);
    for (int r = 0; r < rows; ++r)
      finish(r, s.sum[r], s.acc + r * width);
    return;
  }
  for (int r = 0; r < rows; ++r)
    s.merged_max[r] = s.merged_sum[r] = 0;
  for (int i = 0; i < rows * width; ++i)
    s.merged[i] = 0;
  for (int c = first_chunk; c * attention_chunk < seen.end; ++c) {
    run_chunk<Element>(w, c, width, s, products);
    for (int r = 0; r < rows; ++r)
      merge_row(s.max[r], s.sum[r], s.acc + r * width, w.head_dim, s.merged_max[r], s.merged_sum[r],
                s.merged + r * width);
  }
  for (int r = 0; r < rows; ++r)
    finish(r, s.merged_sum[r], s.merged + r * width);
}

template <class Element, class Products>
inline void run_partial(const attention_work& w, std::int32_t chunk, float* partials,
                        std::int64_t query_stride, std::int64_t head_stride) {
  row_state s;
  Products products(s);
  const int width = round_up(w.head_dim, 16);
  products.load_queries(w);
  run_chunk<Element>(w, chunk, width, s, products);
  for (int r = 0; r < w.n_queries * w.n_heads; ++r) {
    const int t = r / w.n_heads;
    float* to = partials + t * query_stride + (r - t * w.n_heads) * head_stride;
    to[0] = s.max[r];
    to[1] = s.sum[r];
    for (int d = 0; d < w.head_dim; ++d)
      to[2 + d] = s.acc[r * width + d];
  }
}

/// f32 KV is always multiplied in f32, whatever Products is.
template <class Element, class Products>
using products_of = std::conditional_t<std::is_same_v<Element, float>, f32_products, Products>;

template <class Products>
void attention_whole(const attention_work& w) {
  with_kv_element(w.type, [&](auto element) {
    using Element = decltype(element);
    run_whole<Element, products_of<Element, Products>>(w);
  });
}

template <class Products>
void attention_partial(const attention_work& w, std::int32_t chunk, float* partials,
                       std::int64_t query_stride, std::int64_t head_stride) {
  with_kv_element(w.type, [&](auto element) {
    using Element = decltype(element);
    run_partial<Element, products_of<Element, Products>>(w, chunk, partials, query_stride,
                                                         head_stride);
  });
}

void attention_merge(const float* partials, std::int64_t stride, std::int32_t n,
                     std::int32_t head_dim, float* out) {
  alignas(64) float merged[max_dim] = {};
  float max = 0, sum = 0;
  for (int c = 0; c < n; ++c) {
    const float* p = partials + c * stride;
    merge_row(p[0], p[1], p + 2, head_dim, max, sum, merged);
  }
  finish_row(sum, merged, head_dim, out);
}

template <class Products>
constexpr attention_kernels make_attention() {
  return {attention_whole<Products>, attention_partial<Products>, attention_merge};
}

} // namespace
} // namespace twill::gpu::host
