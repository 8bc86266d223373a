// decode_mma: the products of a decode attention block with 16-bit and int8 KV. Scores and sums of
// weighted values are computed by mma; the rows of its operand A are the heads.
//
// Queries and softmax weights are f32. Each is split into two 16-bit parts, the first in rows 0 to
// 7 of A and the second in rows 8 to 15, and the products of both parts are added. Relative to a
// head's largest value this keeps about 22 bits with f16 and int8 KV (int8 codes are exact in f16)
// and 16 bits with bf16 KV.
#pragma once

#include <cstdint>

#include "gpu/attention/cuda/mma_pieces.hpp"

namespace twill::gpu::cuda {

template <class Shape, class Ptx>
struct decode_mma : mma_pieces<Shape, Ptx> {
  using base = mma_pieces<Shape, Ptx>;
  using base::columns, base::lane, base::multiply_piece, base::narrow, base::ptx, base::warp,
      base::widen;

  /// Pieces of a value that a warp sums; a warp has every fourth piece.
  static constexpr int warp_segments = (Shape::value_segments + Shape::warps - 1) / Shape::warps;

  /// A thread holds sums of values for `thread_heads` heads, with `thread_sums` dimensions each.
  static constexpr int thread_heads = Shape::tiles;
  static constexpr int thread_sums = warp_segments * columns * 2;
  using accumulators = float[thread_heads][warp_segments][columns][4];

  /// The number of a thread's head in its block.
  TWILL_KERNEL_MEMBER int head_of(int i) const { return i * decode_tile_heads + lane() / 4; }
  TWILL_KERNEL_MEMBER bool has_sum(int n) const { return is_segment(segment_of(n)); }
  TWILL_KERNEL_MEMBER int dimension_of(int n) const {
    return segment_of(n) * Shape::piece + (2 * (lane() % 4) + n % 2) * columns + n / 2 % columns;
  }
  TWILL_KERNEL_MEMBER static float sum_of(const accumulators& sum, int i, int n) {
    const float(&d)[4] = sum[i][n / (2 * columns)][n / 2 % columns];
    return d[n % 2] + d[n % 2 + 2];
  }

  /// Stores an element of the query of head `h` of the block.
  TWILL_KERNEL_MEMBER void store_query(int h, int dimension, float x) {
    const unsigned at =
        Shape::query_at +
        static_cast<unsigned>(h / decode_tile_heads * Shape::query_bytes +
                              h % decode_tile_heads * Shape::query_pitch + dimension * 2);
    const std::uint16_t part = narrow(x);
    ptx.store_shared(at, part);
    ptx.store_shared(at + decode_tile_heads * Shape::query_pitch, narrow(ptx.add(x, -widen(part))));
  }

  /// Stores the scores of the warp's piece of positions (8 or 16 positions, see decode_shape.hpp).
  /// A position's column is its place in the order of decode_pieces.hpp; `column` is that of the
  /// piece's first position. score(h, c, product) computes the score of query h for the position in
  /// column c from the product of the query and the key. If the row sees no position of the piece
  /// (`seen` is false), the piece's products count as 0.
  template <class Score>
  TWILL_KERNEL_MEMBER void multiply_keys(unsigned slot, int column, bool seen, const Score& score) {
    float d[Shape::tiles][columns][4] = {};
    if (seen) {
      TWILL_UNROLL
      for (int k = 0; k < Shape::dim; k += 32) {
        const bool half = k + 16 == Shape::dim;
        std::uint32_t b[4], a[4];
        const int dim = half ? lane() % 16 : lane();
        ptx.template load_matrices<true>(b, slot + swizzled<Shape::key_segments>(dim, warp()) +
                                                k * Shape::key_segments * 16);
        TWILL_UNROLL
        for (int tile = 0; tile < Shape::tiles; ++tile) {
          const unsigned at = Shape::query_at + tile * Shape::query_bytes;
          load_rows(a, at, Shape::query_pitch, k);
          multiply_piece(d[tile], a, b[0], b[1]);
          if (half) continue;
          load_rows(a, at, Shape::query_pitch, k + 16);
          multiply_piece(d[tile], a, b[2], b[3]);
        }
      }
    }
    TWILL_UNROLL
    for (int tile = 0; tile < Shape::tiles; ++tile) {
      TWILL_UNROLL
      for (int c = 0; c < columns; ++c)
        store_scores(tile, column + 8 * c + 2 * (lane() % 4), d[tile][c], score);
    }
  }

  /// Adds a sub-tile's weighted values. Each warp computes every fourth piece of the dimensions.
  TWILL_KERNEL_MEMBER void multiply_values(int sub_tile, unsigned slot, accumulators& sum) {
    TWILL_UNROLL
    for (int k = 0; k < Shape::positions; k += 32) {
      std::uint32_t a[Shape::tiles][2][4];
      TWILL_UNROLL
      for (int tile = 0; tile < Shape::tiles; ++tile)
        for (int half = 0; half < 2; ++half)
          load_rows(a[tile][half], Shape::weights_at + tile * Shape::weight_bytes,
                    Shape::weight_pitch, sub_tile * Shape::positions + k + 16 * half);
      TWILL_UNROLL
      for (int j = 0; j < warp_segments; ++j) {
        const int segment = warp() + Shape::warps * j;
        if (!is_segment(segment)) break;
        std::uint32_t b[4];
        // Segments whose numbers differ by 8 lie 8 places apart.
        ptx.template load_matrices<true>(
            b, slot + swizzled<Shape::value_segments>(lane(), warp() + Shape::warps * (j % 2)) +
                   (k * Shape::value_segments + j / 2 * 2 * Shape::warps) * 16);
        TWILL_UNROLL
        for (int tile = 0; tile < Shape::tiles; ++tile) {
          multiply_piece(sum[tile][j], a[tile][0], b[0], b[1]);
          multiply_piece(sum[tile][j], a[tile][1], b[2], b[3]);
        }
      }
    }
  }

private:
  TWILL_KERNEL_MEMBER int segment_of(int n) const {
    return warp() + Shape::warps * (n / (2 * columns));
  }
  TWILL_KERNEL_MEMBER static bool is_segment(int segment) {
    return Shape::value_segments % Shape::warps == 0 || segment < Shape::value_segments;
  }

  /// Stores the scores of two neighbouring columns of head lane / 4 of a tile.
  template <class Score>
  TWILL_KERNEL_MEMBER void store_scores(int tile, int column, const float (&d)[4],
                                        const Score& score) {
    const int h = head_of(tile);
    ptx.store_shared(Shape::weights_at +
                         static_cast<unsigned>(tile * Shape::weight_bytes +
                                               lane() / 4 * Shape::score_pitch + column * 4),
                     floats2{{score(h, column, d[0] + d[2]), score(h, column + 1, d[1] + d[3])}});
  }

  /// Loads operand A for 16 columns of a tile from shared memory, whose rows have `pitch` bytes.
  TWILL_KERNEL_MEMBER void load_rows(std::uint32_t (&a)[4], unsigned at, int pitch,
                                     int column) const {
    ptx.template load_matrices<false>(
        a, at + static_cast<unsigned>(lane() % 16 * pitch + (column + lane() / 16 * 8) * 2));
  }
};

} // namespace twill::gpu::cuda
