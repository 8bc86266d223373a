// A view of one sequence's paged KV, tile by tile: the addresses of keys and values, and the
// positions that a row sees.
//
// Only the attention_*.cpp files may include this header. Everything has internal linkage, for
// the reason that gpu/host/simd.hpp gives.
#pragma once

#include "gpu/attention/host/attention_matmul.hpp"

namespace twill::gpu::host {
namespace {

constexpr int max_rows = attention_max_rows;
constexpr int max_dim = attention_max_dim;
/// Rows that are multiplied together, with their sums in registers.
constexpr int rows_at_once = 6;

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

/// Positions [begin, end) that any query sees.
inline visible seen_by_any(const attention_work& w) {
  visible all = seen_by(w, 0);
  for (int t = 1; t < w.n_queries; ++t) {
    const visible v = seen_by(w, t);
    all.begin = v.begin < all.begin ? v.begin : all.begin;
    all.end = v.end > all.end ? v.end : all.end;
  }
  return all;
}

/// Loads the scales of the tile's positions [begin, end), and zeros elsewhere.
inline void load_scales(const attention_work& w, const float* arena, int base, int begin, int end,
                        float* scales) {
  for (int j = 0; j < tile_len; ++j)
    scales[j] = 0;
  int column = (base + begin) / w.block_tokens;
  int offset = base + begin - column * w.block_tokens;
  for (int j = begin; j < end; ++column, offset = 0) {
    const std::int32_t block = w.blocks[column];
    const float* from = arena + block * w.scale_stride + (block < w.n_blocks ? 0 : w.scale_apart) +
                        w.kv_head * w.block_tokens;
    for (; j < end && offset < w.block_tokens; ++j, ++offset)
      scales[j] = from[offset];
  }
}

/// Visits the KV blocks that hold positions [begin, end) of the tile of 64 positions at `base`, in
/// order: f(block's first element, first position within the block, position within the tile,
/// count).
template <class Element, class F>
inline void for_blocks(const attention_work& w, const void* arena, int base, int begin, int end,
                       const F& f) {
  int column = (base + begin) / w.block_tokens;
  int offset = base + begin - column * w.block_tokens;
  for (int j = begin; j < end; ++column, offset = 0) {
    const int left = w.block_tokens - offset;
    const int count = left < end - j ? left : end - j;
    const std::int32_t block = w.blocks[column];
    f(static_cast<const Element*>(arena) + block * w.block_stride +
          (block < w.n_blocks ? 0 : w.apart) +
          std::int64_t{w.kv_head} * w.block_tokens * w.head_dim,
      offset, j, count);
    j += count;
  }
}

/// Prefetches the cache lines of the next tile's keys and values. KV blocks are scattered in
/// memory, so the processor's own prefetchers stop at each block's end, and decoding would wait for
/// the next block.
class tile_prefetch {
public:
  /// Begins with the first n positions of the tile at `base`.
  template <class Element>
  void start(const attention_work& w, int base, int n) {
    constexpr long size = sizeof(Element);
    ranges_ = next_ = 0;
    for_blocks<Element>(w, w.keys, base, 0, n,
                        [&](const Element* block, int offset, int, int count) {
                          if (count == w.block_tokens) return add(block, size * count * w.head_dim);
                          for (int d = 0; d < w.head_dim; ++d)
                            prefetch_bytes(block + d * w.block_tokens + offset, size * count);
                        });
    for_blocks<Element>(w, w.values, base, 0, n,
                        [&](const Element* block, int offset, int, int count) {
                          add(block + offset * w.head_dim, size * count * w.head_dim);
                        });
  }
  /// Prefetches a few cache lines. Many prefetches at once would stall themselves.
  void step() {
    if (next_ == ranges_) return;
    range& at = range_[next_];
    for (int i = 0; i < 4; ++i)
      __builtin_prefetch(at.begin + i * 64, 0, 2);
    at.begin += 256;
    if (at.begin >= at.end) ++next_;
  }
  void finish() {
    while (next_ != ranges_)
      step();
  }

private:
  struct range {
    const char *begin, *end;
  };
  void add(const void* data, long bytes) {
    const auto* begin = static_cast<const char*>(data);
    range_[ranges_++] = {begin, begin + bytes};
  }

  int ranges_ = 0, next_ = 0;
  range range_[2 * tile_len];
};

/// The state of the online softmax of a call's rows. The object is on the thread's stack.
struct row_state {
  alignas(64) float scores[max_rows * tile_len]; // (row, tile_len)
  alignas(64) float acc[max_rows * max_dim];     // (row, width), of this chunk
  alignas(64) float merged[max_rows * max_dim];  // (row, width), of the chunks before
  float max[max_rows], sum[max_rows];            // of this chunk
  float merged_max[max_rows], merged_sum[max_rows];
  int begin[max_rows], end[max_rows]; ///< what each row sees of this tile
  bool scaled; ///< whether codes have scales (i8 KV); scales of positions that no row sees are zero
  alignas(64) float key_scales[tile_len];
  alignas(64) float value_scales[tile_len];
  tile_prefetch ahead;
};

/// Finds the addresses of the tile's first n keys, for few rows, which read the keys in place.
template <class Element>
inline keys_in_place<Element> keys_of(const attention_work& w, int base, int n) {
  keys_in_place<Element> keys;
  keys.stride = w.block_tokens;
  for_blocks<Element>(w, w.keys, base, 0, n,
                      [&](const Element* block, int offset, int j, int count) {
                        for (int i = 0; i < count; i += lanes)
                          keys.at[(j + i) / lanes] = block + offset + i;
                      });
  return keys;
}

/// Points values[begin, end) at the values of those positions.
template <class Element>
inline void values_of(const attention_work& w, int base, int begin, int end,
                      const Element** values) {
  for_blocks<Element>(w, w.values, base, begin, end,
                      [&](const Element* block, int offset, int j, int count) {
                        for (int i = 0; i < count; ++i)
                          values[j + i] = block + (offset + i) * w.head_dim;
                      });
}

/// Calls f(row_count<n>) for n = rows, or n = rows_at_once where there are more.
template <class F>
inline void with_rows(int rows, const F& f) {
  switch (rows < rows_at_once ? rows : rows_at_once) {
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

} // namespace
} // namespace twill::gpu::host
