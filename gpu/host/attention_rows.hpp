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
  alignas(64) float keys[max_dim * tile_len];    // (head_dim, tile_len), unless read in place
  alignas(64) float values[tile_len * max_dim];  // (tile_len, width), unless read in place
  alignas(64) float scores[max_rows * tile_len]; // (row, tile_len), then softmax weights
  alignas(64) float acc[max_rows * max_dim];     // (row, width), of this chunk
  alignas(64) float merged[max_rows * max_dim];  // (row, width), of the chunks before
  float max[max_rows], sum[max_rows];            // of this chunk
  float merged_max[max_rows], merged_sum[max_rows];
  int begin[max_rows], end[max_rows]; ///< what each row sees of this tile
  bool scaled; ///< i8 KV: the tile's codes carry scales, zero where nobody looks
  alignas(64) float key_scales[tile_len];
  alignas(64) float value_scales[tile_len];
};

template <int N>
struct row_count {
  static constexpr int value = N;
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

/// The scales of the tile's positions [begin, end); zeros elsewhere.
inline void load_scales(const attention_work& w, const float* arena, int base, int begin, int end,
                        float* scales) {
  for (int j = 0; j < tile_len; ++j)
    scales[j] = 0;
  int column = (base + begin) / w.block_tokens;
  int offset = base + begin - column * w.block_tokens;
  for (int j = begin; j < end; ++column, offset = 0) {
    const float* from = arena + w.blocks[column] * w.scale_stride + w.kv_head * w.block_tokens;
    for (; j < end && offset < w.block_tokens; ++j, ++offset)
      scales[j] = from[offset];
  }
}

/// Blocks of the arena that hold positions [begin, end) of the tile at `base`, in order:
/// f(block's first element, first position within the block, position within the tile, count).
template <class Element, class F>
inline void for_blocks(const attention_work& w, const void* arena, int base, int begin, int end,
                       const F& f) {
  int column = (base + begin) / w.block_tokens;
  int offset = base + begin - column * w.block_tokens;
  for (int j = begin; j < end; ++column, offset = 0) {
    const int left = w.block_tokens - offset;
    const int count = left < end - j ? left : end - j;
    f(static_cast<const Element*>(arena) + w.blocks[column] * w.block_stride +
          std::int64_t{w.kv_head} * w.block_tokens * w.head_dim,
      offset, j, count);
    j += count;
  }
}

/// Asks for the keys and values of the tile's first n positions ahead of their use. Blocks lie
/// anywhere, so the processor's own prefetchers lose track at each one; without this, decoding
/// waits for every block.
template <class Element>
inline void prefetch_tile(const attention_work& w, int base, int n) {
  constexpr long size = sizeof(Element);
  for_blocks<Element>(w, w.keys, base, 0, n, [&](const Element* block, int offset, int, int count) {
    if (count == w.block_tokens) return prefetch_bytes(block, size * count * w.head_dim);
    for (int d = 0; d < w.head_dim; ++d)
      prefetch_bytes(block + d * w.block_tokens + offset, size * count);
  });
  for_blocks<Element>(w, w.values, base, 0, n,
                      [&](const Element* block, int offset, int, int count) {
                        prefetch_bytes(block + offset * w.head_dim, size * count * w.head_dim);
                      });
}

/// Scales of the tile's codes, where the element type has them.
template <class Element>
inline void load_tile_scales(const attention_work& w, int base, int begin, int end,
                             attention_scratch& s) {
  s.scaled = sizeof(Element) == sizeof(code_i8);
  if (!s.scaled) return;
  load_scales(w, w.key_scales, base, begin, end, s.key_scales);
  load_scales(w, w.value_scales, base, begin, end, s.value_scales);
}

/// Keys of positions [begin, end), widened into the scratch; zeros elsewhere up to n.
template <class Element>
inline void widen_keys(const attention_work& w, int base, int begin, int end, int n,
                       attention_scratch& s) {
  for (int d = 0; d < w.head_dim; ++d) {
    for (int j = 0; j < begin; ++j)
      s.keys[d * tile_len + j] = 0;
    for (int j = end; j < n; ++j)
      s.keys[d * tile_len + j] = 0;
  }
  for_blocks<Element>(w, w.keys, base, begin, end,
                      [&](const Element* block, int offset, int j, int count) {
                        for (int d = 0; d < w.head_dim; ++d) {
                          const Element* from = block + d * w.block_tokens + offset;
                          float* to = s.keys + d * tile_len + j;
                          int i = 0;
                          for (; i + lanes <= count; i += lanes)
                            store(to + i, load_wide(from + i));
                          for (; i < count; ++i)
                            to[i] = widen(from[i]);
                        }
                      });
}

/// f(count<rows>) for a number of rows from 1 to 6.
template <class F>
inline void with_rows(int rows, const F& f) {
  switch (rows) {
  case 6:
    return f(row_count<6>{});
  case 5:
    return f(row_count<5>{});
  case 4:
    return f(row_count<4>{});
  case 3:
    return f(row_count<3>{});
  case 2:
    return f(row_count<2>{});
  default:
    return f(row_count<1>{});
  }
}

template <class Keys>
inline void scores_of(attention_scratch& s, const Keys& keys, int row, int rows, int n,
                      int head_dim) {
  with_rows(rows, [&](auto r) {
    score_rows<decltype(r)::value>(s.q + row * head_dim, head_dim, keys, n, head_dim,
                                   s.scores + row * tile_len);
  });
}

template <class Element>
inline void add_values(attention_scratch& s, const Element* const* values, int row, int rows,
                       int begin, int end, int width) {
  with_rows(rows, [&](auto r) {
    value_rows<decltype(r)::value>(s.scores + row * tile_len, values, begin, end, width,
                                   s.acc + row * width, width);
  });
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
template <class Element>
inline void values_of(attention_scratch& s, const Element* const* values, int row, int rows,
                      int width) {
  int begin = s.begin[row], end = s.end[row];
  for (int r = row + 1; r < row + rows; ++r) {
    begin = s.begin[r] > begin ? s.begin[r] : begin;
    end = s.end[r] < end ? s.end[r] : end;
  }
  if (begin >= end) {
    for (int r = row; r < row + rows; ++r)
      add_values(s, values, r, 1, s.begin[r], s.end[r], width);
    return;
  }
  for (int r = row; r < row + rows; ++r)
    add_values(s, values, r, 1, s.begin[r], begin, width);
  add_values(s, values, row, rows, begin, end, width);
  for (int r = row; r < row + rows; ++r)
    add_values(s, values, r, 1, end, s.end[r], width);
}

constexpr int rows_at_once = 6;

/// Scores of all rows against the tile's first n positions (a multiple of 16). Few rows read keys
/// where they lie; more share a widened copy. Either way a score is summed in the same order.
template <class Element>
inline void score_tile(const attention_work& w, int base, int begin, int end, int n,
                       attention_scratch& s) {
  const int rows = w.n_queries * w.n_heads;
  if (rows <= rows_at_once && begin == 0 && w.block_tokens % 16 == 0) {
    keys_in_place<Element> keys;
    keys.stride = w.block_tokens;
    for_blocks<Element>(w, w.keys, base, 0, n,
                        [&](const Element* block, int offset, int j, int count) {
                          for (int i = 0; i < count; i += lanes)
                            keys.at[(j + i) / lanes] = block + offset + i;
                        });
    return scores_of(s, keys, 0, rows, n, w.head_dim);
  }
  widen_keys<Element>(w, base, begin, end, n, s);
  for (int row = 0; row < rows; row += rows_at_once)
    scores_of(s, keys_widened{s.keys}, row, rows - row < rows_at_once ? rows - row : rows_at_once,
              n, w.head_dim);
}

/// Adds the tile's values, read in place by few rows and widened first for more.
template <class Element>
inline void value_tile(const attention_work& w, int base, int begin, int end, int width,
                       attention_scratch& s) {
  const int rows = w.n_queries * w.n_heads;
  const Element* values[tile_len];
  for_blocks<Element>(w, w.values, base, begin, end,
                      [&](const Element* block, int offset, int j, int count) {
                        for (int i = 0; i < count; ++i)
                          values[j + i] = block + (offset + i) * w.head_dim;
                      });
  if (width == w.head_dim && (rows <= rows_at_once || sizeof(Element) == sizeof(float))) {
    for (int row = 0; row < rows; row += rows_at_once)
      values_of(s, values, row, rows - row < rows_at_once ? rows - row : rows_at_once, width);
    return;
  }
  widen_values(values, begin, end, w.head_dim, width, s.values);
  const float* wide[tile_len];
  for (int j = begin; j < end; ++j)
    wide[j] = s.values + j * width;
  for (int row = 0; row < rows; row += rows_at_once)
    values_of(s, wide, row, rows - row < rows_at_once ? rows - row : rows_at_once, width);
}

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
  const int n = round_up(end, 16);
  const int rows = w.n_queries * w.n_heads;
  load_tile_scales<Element>(w, base, begin, end, s);
  score_tile<Element>(w, base, begin, end, n, s);
  for (int row = 0; row < rows; ++row) {
    const int t = row / w.n_heads;
    const float slope = w.slopes == nullptr ? 0 : w.slopes[row - t * w.n_heads];
    softmax_row(s, row, n, width, slope, static_cast<float>(base - w.positions[t]));
  }
  const int ahead = stop - base - tile_len;
  if (ahead > 0) prefetch_tile<Element>(w, base + tile_len, ahead < tile_len ? ahead : tile_len);
  value_tile<Element>(w, base, begin, end, width, s);
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
  if (base < stop) prefetch_tile<Element>(w, base, stop - base < tile_len ? stop - base : tile_len);
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
