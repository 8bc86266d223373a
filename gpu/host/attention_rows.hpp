// Attention of a few rows over paged KV: softmax, masks and the walk over tiles and chunks.
//
// Included by the attention_*.cpp files only; internal linkage, see simd.hpp.
#pragma once

#include "gpu/host/attention_tiles.hpp"

namespace twill::gpu::host {
namespace {

constexpr int max_rows = attention_max_rows;
constexpr int max_dim = attention_max_dim;

/// Everything one call needs; lives on the stack of the thread.
struct attention_scratch {
  alignas(64) float q[max_rows * max_dim];       // (row, head_dim), scaled
  alignas(64) float keys[max_dim * tile_len];    // (head_dim, tile_len)
  alignas(64) float values[tile_len * max_dim];  // (tile_len, width), unless read in place
  alignas(64) float scores[max_rows * tile_len]; // (row, tile_len), then softmax weights
  alignas(64) float acc[max_rows * max_dim];     // (row, width), of this chunk
  alignas(64) float merged[max_rows * max_dim];  // (row, width), of the chunks before
  float max[max_rows], sum[max_rows];            // of this chunk
  float merged_max[max_rows], merged_sum[max_rows];
  int begin[max_rows], end[max_rows]; ///< what each row sees of this tile
  const float* value_rows[tile_len];
  bool scaled; ///< i8 KV: the tile's codes carry scales, zero where nobody looks
  alignas(64) float key_scales[tile_len];
  alignas(64) float value_scales[tile_len];
};

/// Positions [begin, end) that query t sees.
struct visible {
  int begin, end;
};
inline visible seen_by(const attention_work& w, int t) {
  const int end = w.positions[t] + 1;
  return {w.window > 0 && end > w.window ? end - w.window : 0, end};
}

inline void load_queries(const attention_work& w, attention_scratch& s) {
  for (int t = 0; t < w.n_queries; ++t) {
    const float* from = w.q + t * w.q_stride;
    float* to = s.q + t * w.n_heads * w.head_dim;
    for (int i = 0; i < w.n_heads * w.head_dim; ++i)
      to[i] = from[i] * w.scale;
  }
}

alignas(64) constexpr float zero_row[max_dim] = {};

/// Row addresses of the tile's positions [begin, end) for this KV head; zeros elsewhere, where the
/// block table may name blocks that are no longer the sequence's.
template <class Element>
inline void find_rows(const attention_work& w, const void* arena, int base, int begin, int end,
                      const Element** rows) {
  const Element* data = static_cast<const Element*>(arena);
  const Element* zeros = reinterpret_cast<const Element*>(zero_row);
  for (int j = 0; j < begin; ++j)
    rows[j] = zeros;
  int column = (base + begin) / w.block_tokens;
  int offset = base + begin - column * w.block_tokens;
  for (int j = begin; j < end;) {
    const std::int64_t block = std::int64_t{w.blocks[column]} * w.n_kv_heads + w.kv_head;
    const Element* row = data + (block * w.block_tokens + offset) * w.head_dim;
    for (; j < end && offset < w.block_tokens; ++j, ++offset, row += w.head_dim)
      rows[j] = row;
    ++column;
    offset = 0;
  }
  for (int j = end; j < tile_len; ++j)
    rows[j] = zeros;
}

/// The scales of the tile's positions [begin, end); zeros elsewhere.
inline void load_scales(const attention_work& w, const float* arena, int base, int begin, int end,
                        float* scales) {
  for (int j = 0; j < tile_len; ++j)
    scales[j] = 0;
  int column = (base + begin) / w.block_tokens;
  int offset = base + begin - column * w.block_tokens;
  for (int j = begin; j < end; ++column, offset = 0) {
    const std::int64_t block = std::int64_t{w.blocks[column]} * w.n_kv_heads + w.kv_head;
    const float* from = arena + block * w.block_tokens;
    for (; j < end && offset < w.block_tokens; ++j, ++offset)
      scales[j] = from[offset];
  }
}

/// This tile's keys, transposed, and where its values are: in place or as a padded f32 copy.
template <class Element>
inline void load_tile(const attention_work& w, int base, int begin, int end, int width,
                      attention_scratch& s) {
  const Element* keys[tile_len];
  const Element* values[tile_len];
  find_rows<Element>(w, w.keys, base, begin, end, keys);
  find_rows<Element>(w, w.values, base, begin, end, values);
  prefetch_rows(values, begin, end, w.head_dim);
  transpose_keys(keys, round_up(end, 16), w.head_dim, s.keys);
  s.scaled = sizeof(Element) == sizeof(code_i8);
  if (s.scaled) {
    load_scales(w, w.key_scales, base, begin, end, s.key_scales);
    load_scales(w, w.value_scales, base, begin, end, s.value_scales);
  }
  if constexpr (sizeof(Element) == sizeof(float)) {
    if (width == w.head_dim) {
      for (int j = 0; j < tile_len; ++j)
        s.value_rows[j] = values[j];
      return;
    }
  }
  widen_values(values, begin, end, w.head_dim, width, s.values);
  for (int j = 0; j < tile_len; ++j)
    s.value_rows[j] = s.values + j * width;
}

template <class Element>
inline void prefetch_keys(const attention_work& w, int base, int end) {
  if (end <= 0) return;
  const Element* keys[tile_len];
  find_rows<Element>(w, w.keys, base, 0, end, keys);
  prefetch_rows(keys, 0, end, w.head_dim);
}

inline void scores_of(const attention_scratch& s, int row, int rows, int n, int head_dim,
                      float* scores) {
  const float* q = s.q + row * head_dim;
  switch (rows) {
  case 6:
    return score_rows<6>(q, head_dim, s.keys, n, head_dim, scores);
  case 5:
    return score_rows<5>(q, head_dim, s.keys, n, head_dim, scores);
  case 4:
    return score_rows<4>(q, head_dim, s.keys, n, head_dim, scores);
  case 3:
    return score_rows<3>(q, head_dim, s.keys, n, head_dim, scores);
  case 2:
    return score_rows<2>(q, head_dim, s.keys, n, head_dim, scores);
  default:
    return score_rows<1>(q, head_dim, s.keys, n, head_dim, scores);
  }
}

inline void add_values(attention_scratch& s, int row, int rows, int begin, int end, int width) {
  const float* weights = s.scores + row * tile_len;
  float* acc = s.acc + row * width;
  switch (rows) {
  case 6:
    return value_rows<6>(weights, s.value_rows, begin, end, width, acc, width);
  case 5:
    return value_rows<5>(weights, s.value_rows, begin, end, width, acc, width);
  case 4:
    return value_rows<4>(weights, s.value_rows, begin, end, width, acc, width);
  case 3:
    return value_rows<3>(weights, s.value_rows, begin, end, width, acc, width);
  case 2:
    return value_rows<2>(weights, s.value_rows, begin, end, width, acc, width);
  default:
    return value_rows<1>(weights, s.value_rows, begin, end, width, acc, width);
  }
}

/// Turns a row's scores of this tile into softmax weights relative to its new maximum.
/// `distance` is the tile's first position minus the query's.
inline void softmax_row(attention_scratch& s, int row, int n, int width, float slope,
                        float distance) {
  const int begin = s.begin[row], end = s.end[row];
  if (begin >= end) return;
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
  vf top = load(x);
  for (int j = lanes; j < n; j += lanes)
    top = max_of(load(x + j), top);
  float max = largest(top);
  max = max > s.max[row] ? max : s.max[row];
  if (max != s.max[row] && s.sum[row] > 0) {
    const vf shrink = exp_of(splat(s.max[row] - max));
    float* acc = s.acc + row * width;
    for (int d = 0; d < width; d += lanes)
      store(acc + d, load(acc + d) * shrink);
    s.sum[row] *= shrink[0];
  }
  s.max[row] = max;
  vf sum = {};
  for (int j = 0; j < n; j += lanes) {
    const vf weight = exp_of(load(x + j) - max);
    store(x + j, s.scaled ? weight * load(s.value_scales + j) : weight);
    sum += weight;
  }
  s.sum[row] += sum_of(sum);
}

/// Weighted values of `rows` rows; each row's positions in ascending order, none it does not see.
inline void values_of(attention_scratch& s, int row, int rows, int width) {
  int begin = s.begin[row], end = s.end[row];
  for (int r = row + 1; r < row + rows; ++r) {
    begin = s.begin[r] > begin ? s.begin[r] : begin;
    end = s.end[r] < end ? s.end[r] : end;
  }
  if (begin >= end) {
    for (int r = row; r < row + rows; ++r)
      add_values(s, r, 1, s.begin[r], s.end[r], width);
    return;
  }
  for (int r = row; r < row + rows; ++r)
    add_values(s, r, 1, s.begin[r], begin, width);
  add_values(s, row, rows, begin, end, width);
  for (int r = row; r < row + rows; ++r)
    add_values(s, r, 1, end, s.end[r], width);
}

constexpr int rows_at_once = 6;

/// The tile at `base`; the next one is asked for if it begins before `stop`.
template <class Element>
inline void run_tile(const attention_work& w, int base, int stop, int width, attention_scratch& s) {
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
  load_tile<Element>(w, base, begin, end, width, s);
  const int n = round_up(end, 16);
  const int rows = w.n_queries * w.n_heads;
  for (int row = 0; row < rows; row += rows_at_once) {
    const int some = rows - row < rows_at_once ? rows - row : rows_at_once;
    scores_of(s, row, some, n, w.head_dim, s.scores + row * tile_len);
  }
  for (int row = 0; row < rows; ++row) {
    const int t = row / w.n_heads;
    const float slope = w.slopes == nullptr ? 0 : w.slopes[row - t * w.n_heads];
    softmax_row(s, row, n, width, slope, static_cast<float>(base - w.positions[t]));
  }
  const int ahead = stop - base - tile_len;
  prefetch_keys<Element>(w, base + tile_len, ahead < tile_len ? ahead : tile_len);
  for (int row = 0; row < rows; row += rows_at_once)
    values_of(s, row, rows - row < rows_at_once ? rows - row : rows_at_once, width);
}

/// One chunk from scratch: max, sum and acc of every row.
template <class Element>
inline void run_chunk(const attention_work& w, int chunk, int width, attention_scratch& s) {
  const int rows = w.n_queries * w.n_heads;
  for (int r = 0; r < rows; ++r) {
    s.max[r] = minus_infinity;
    s.sum[r] = 0;
  }
  for (int i = 0; i < rows * width; ++i)
    s.acc[i] = 0;
  int first = seen_by(w, 0).begin, last = seen_by(w, 0).end;
  for (int t = 1; t < w.n_queries; ++t) {
    const visible v = seen_by(w, t);
    first = v.begin < first ? v.begin : first;
    last = v.end > last ? v.end : last;
  }
  int base = chunk * attention_chunk;
  const int stop = base + attention_chunk < last ? base + attention_chunk : last;
  if (first > base) base = first / tile_len * tile_len;
  prefetch_keys<Element>(w, base, stop - base < tile_len ? stop - base : tile_len);
  for (; base < stop; base += tile_len)
    run_tile<Element>(w, base, stop, width, s);
}

/// Adds one chunk's result of a row to what was merged before. Not inlined: both callers must
/// round alike.
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

template <class Element>
inline void run_whole(const attention_work& w) {
  attention_scratch s;
  const int width = round_up(w.head_dim, 16);
  const int rows = w.n_queries * w.n_heads;
  int first = seen_by(w, 0).begin, last = seen_by(w, 0).end;
  for (int t = 1; t < w.n_queries; ++t) {
    const visible v = seen_by(w, t);
    first = v.begin < first ? v.begin : first;
    last = v.end > last ? v.end : last;
  }
  load_queries(w, s);
  for (int r = 0; r < rows; ++r)
    s.merged_max[r] = s.merged_sum[r] = 0;
  for (int i = 0; i < rows * width; ++i)
    s.merged[i] = 0;
  for (int c = first / attention_chunk; c * attention_chunk < last; ++c) {
    run_chunk<Element>(w, c, width, s);
    for (int r = 0; r < rows; ++r)
      merge_row(s.max[r], s.sum[r], s.acc + r * width, w.head_dim, s.merged_max[r], s.merged_sum[r],
                s.merged + r * width);
  }
  for (int r = 0; r < rows; ++r) {
    const int t = r / w.n_heads;
    finish_row(s.merged_sum[r], s.merged + r * width, w.head_dim,
               w.out + t * w.out_stride + std::int64_t{r - t * w.n_heads} * w.head_dim);
  }
}

template <class Element>
inline void run_partial(const attention_work& w, std::int32_t chunk, float* partials,
                        std::int64_t query_stride, std::int64_t head_stride) {
  attention_scratch s;
  const int width = round_up(w.head_dim, 16);
  load_queries(w, s);
  run_chunk<Element>(w, chunk, width, s);
  for (int r = 0; r < w.n_queries * w.n_heads; ++r) {
    const int t = r / w.n_heads;
    float* to = partials + t * query_stride + (r - t * w.n_heads) * head_stride;
    to[0] = s.max[r];
    to[1] = s.sum[r];
    for (int d = 0; d < w.head_dim; ++d)
      to[2 + d] = s.acc[r * width + d];
  }
}

void attention_whole(const attention_work& w) {
  if (w.type == dtype::f32) return run_whole<float>(w);
  if (w.type == dtype::f16) return run_whole<half_f16>(w);
  if (w.type == dtype::i8) return run_whole<code_i8>(w);
  run_whole<half_bf16>(w);
}

void attention_partial(const attention_work& w, std::int32_t chunk, float* partials,
                       std::int64_t query_stride, std::int64_t head_stride) {
  if (w.type == dtype::f32)
    return run_partial<float>(w, chunk, partials, query_stride, head_stride);
  if (w.type == dtype::f16)
    return run_partial<half_f16>(w, chunk, partials, query_stride, head_stride);
  if (w.type == dtype::i8)
    return run_partial<code_i8>(w, chunk, partials, query_stride, head_stride);
  run_partial<half_bf16>(w, chunk, partials, query_stride, head_stride);
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

} // namespace
} // namespace twill::gpu::host
