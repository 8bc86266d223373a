// Attention's two products (queries with keys, softmax weights with values) in f32, for any KV
// type.
//
// Only the attention_*.cpp files may include this header. Everything has internal linkage, for the
// reason that gpu/host/simd.hpp gives.
#pragma once

#include "gpu/attention/host/paged_kv_view.hpp"

namespace twill::gpu::host {
namespace {

class f32_products {
public:
  /// Scores are written to rows.scores, where softmax weights later replace them.
  explicit f32_products(row_state& rows) : rows_(rows) {}

  void load_queries(const attention_work& w) {
    for (int t = 0; t < w.n_queries; ++t) {
      const float* from = w.q + t * w.q_stride;
      float* to = q_ + t * w.n_heads * w.head_dim;
      for (int i = 0; i < w.n_heads * w.head_dim; ++i)
        to[i] = from[i] * w.scale;
    }
  }

  /// Computes the scores of all rows for the first n positions (n is a multiple of 16) of a tile of
  /// 64 positions. Up to rows_at_once rows read the keys directly; more rows share a copy widened
  /// to f32. In both cases a score is summed in the same order.
  template <class Element>
  void score_tile(const attention_work& w, int base, int begin, int end, int n) {
    const int rows = w.n_queries * w.n_heads;
    if (rows <= rows_at_once && begin == 0 && w.block_tokens % 16 == 0)
      return scores_of(keys_of<Element>(w, base, n), 0, rows, n, w.head_dim);
    widen_keys<Element>(w, base, begin, end, n);
    for (int row = 0; row < rows; row += rows_at_once)
      scores_of(keys_widened{keys_}, row, rows - row, n, w.head_dim);
  }

  /// The softmax weight of a score relative to the maximum.
  static vf weight_of(vf score) { return exp_of(score); }
  /// Stores the softmax weights of a row's positions [j, j + lanes).
  void set_weights(int row, int j, vf weights) {
    store(rows_.scores + row * tile_len + j, weights);
  }
  /// Called for a row that sees nothing of the tile.
  void no_weights(int) {}

  /// Adds the weighted values of positions [begin, end) of a tile of 64 positions to each row's
  /// sums. Up to rows_at_once rows read the values in place; more rows share a copy widened to f32.
  template <class Element>
  void value_tile(const attention_work& w, int base, int begin, int end, int width) {
    const int rows = w.n_queries * w.n_heads;
    rows_.ahead.finish();
    const Element* values[tile_len];
    values_of(w, base, begin, end, values);
    if (width == w.head_dim && (rows <= rows_at_once || sizeof(Element) == sizeof(float)))
      return add_all(values, rows, width);
    widen_values(values, begin, end, w.head_dim, width, values_);
    const float* wide[tile_len];
    for (int j = begin; j < end; ++j)
      wide[j] = values_ + j * width;
    add_all(wide, rows, width);
  }

private:
  /// Widens the keys of positions [begin, end), with zeros elsewhere up to n.
  template <class Element>
  void widen_keys(const attention_work& w, int base, int begin, int end, int n) {
    for (int d = 0; d < w.head_dim; ++d) {
      for (int j = 0; j < begin; ++j)
        keys_[d * tile_len + j] = 0;
      for (int j = end; j < n; ++j)
        keys_[d * tile_len + j] = 0;
    }
    for_blocks<Element>(w, w.keys, base, begin, end,
                        [&](const Element* block, int offset, int j, int count) {
                          for (int d = 0; d < w.head_dim; ++d) {
                            const Element* from = block + d * w.block_tokens + offset;
                            float* to = keys_ + d * tile_len + j;
                            int i = 0;
                            for (; i + lanes <= count; i += lanes)
                              store(to + i, load_wide(from + i));
                            for (; i < count; ++i)
                              to[i] = widen(from[i]);
                          }
                        });
  }

  template <class Keys>
  void scores_of(const Keys& keys, int row, int rows, int n, int head_dim) {
    with_rows(rows, [&](auto r) {
      score_rows<decltype(r)::value>(q_ + row * head_dim, head_dim, keys, n, head_dim,
                                     rows_.scores + row * tile_len);
    });
  }

  template <class Element>
  void add_all(const Element* const* values, int rows, int width) {
    for (int row = 0; row < rows; row += rows_at_once)
      add_seen(values, row, rows - row < rows_at_once ? rows - row : rows_at_once, width);
  }

  /// Adds the weighted values to the sums of up to rows_at_once rows. For each row, positions are
  /// added in ascending order, and only those that the row sees.
  template <class Element>
  void add_seen(const Element* const* values, int row, int rows, int width) {
    int begin = rows_.begin[row], end = rows_.end[row];
    for (int r = row + 1; r < row + rows; ++r) {
      begin = rows_.begin[r] > begin ? rows_.begin[r] : begin;
      end = rows_.end[r] < end ? rows_.end[r] : end;
    }
    if (begin >= end) {
      for (int r = row; r < row + rows; ++r)
        add(values, r, 1, rows_.begin[r], rows_.end[r], width);
      return;
    }
    for (int r = row; r < row + rows; ++r)
      add(values, r, 1, rows_.begin[r], begin, width);
    add(values, row, rows, begin, end, width);
    for (int r = row; r < row + rows; ++r)
      add(values, r, 1, end, rows_.end[r], width);
  }

  template <class Element>
  void add(const Element* const* values, int row, int rows, int begin, int end, int width) {
    with_rows(rows, [&](auto r) {
      value_rows<decltype(r)::value>(rows_.scores + row * tile_len, values, begin, end, width,
                                     rows_.acc + row * width, width);
    });
  }

  row_state& rows_;
  alignas(64) float q_[max_rows * max_dim];      // (row, head_dim), scaled
  alignas(64) float keys_[max_dim * tile_len];   // (head_dim, tile_len), where not read in place
  alignas(64) float values_[tile_len * max_dim]; // (tile_len, width), where not read in place
};

} // namespace
} // namespace twill::gpu::host
