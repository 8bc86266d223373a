// decode_fma: the products of a decode attention block with f32 KV. Scores and sums of weighted
// values are computed by f32 multiply-adds, so that nothing is rounded to fewer bits. The struct
// has the same members as decode_mma, which computes the products for the other KV types.
#pragma once

#include <cmath>

#include "gpu/attention/cuda/decode_pieces.hpp"

namespace twill::gpu::cuda {

template <class Shape, class Ptx>
struct decode_fma : decode_pieces<Shape, Ptx> {
  using base = decode_pieces<Shape, Ptx>;
  using base::lane, base::ptx, base::warp;

  /// Pieces of four dimensions of a value that a thread sums; a thread has every 32nd piece.
  static constexpr int thread_segments = (Shape::value_segments + 31) / 32;

  static constexpr int thread_heads = 2 * Shape::tiles;
  static constexpr int thread_sums = 4 * thread_segments;
  using accumulators = float[thread_heads][thread_sums];

  /// The number in the block of the thread's head i. A warp has two heads of each tile.
  TWILL_KERNEL_MEMBER int head_of(int i) const {
    return i / 2 * decode_tile_heads + 2 * warp() + i % 2;
  }
  TWILL_KERNEL_MEMBER bool has_sum(int n) const {
    return lane() + n / 4 * 32 < Shape::value_segments;
  }
  TWILL_KERNEL_MEMBER int dimension_of(int n) const { return (lane() + n / 4 * 32) * 4 + n % 4; }
  TWILL_KERNEL_MEMBER static float sum_of(const accumulators& sum, int i, int n) {
    return sum[i][n];
  }

  TWILL_KERNEL_MEMBER void store_query(int h, int dimension, float x) {
    ptx.store_shared(query_place(h, dimension), x);
  }

  /// Computes the scores of four positions per warp for tiles of eight query heads. Half a warp
  /// computes four heads of each tile. Its 16 threads divide the dimensions among them, and each
  /// thread ends with the score of one head and position per tile.
  template <class Score>
  TWILL_KERNEL_MEMBER void multiply_keys(unsigned slot, int column, bool seen, const Score& score) {
    float d[Shape::tiles][16] = {}; // four heads, four positions
    if (seen) {
      TWILL_UNROLL
      for (int k = 0; k < Shape::dim; k += 16) {
        const auto key = ptx.template load_shared<floats4>(
            slot + swizzled<Shape::key_segments>(lane() % 16, warp()) +
            k * Shape::key_segments * 16);
        TWILL_UNROLL
        for (int i = 0; i < Shape::tiles * 16; ++i) {
          const int h = i / 16 * decode_tile_heads + lane() / 16 * 4 + i / 4 % 4;
          const auto query = ptx.template load_shared<float>(query_place(h, k + lane() % 16));
          d[i / 16][i % 16] = ::fmaf(query, key.value[i % 4], d[i / 16][i % 16]);
        }
      }
    }
    TWILL_UNROLL
    for (int tile = 0; tile < Shape::tiles; ++tile)
      ptx.store_shared(
          score_place(tile * decode_tile_heads + lane() / 4, column + lane() % 4),
          score(tile * decode_tile_heads + lane() / 4, column + lane() % 4, sum_of_16(d[tile])));
  }

  /// Adds a sub-tile's weighted values. Threads beyond the last piece compute the last piece again.
  TWILL_KERNEL_MEMBER void multiply_values(int sub_tile, unsigned slot, accumulators& sum) {
    TWILL_UNROLL
    for (int p = 0; p < Shape::positions; p += 4) {
      floats4 weights[thread_heads];
      TWILL_UNROLL
      for (int i = 0; i < thread_heads; ++i)
        weights[i] = ptx.template load_shared<floats4>(
            score_place(head_of(i), sub_tile * Shape::positions + p));
      TWILL_UNROLL
      for (int j = 0; j < thread_segments; ++j) {
        const int own = lane() + 32 * j;
        const int segment = own < Shape::value_segments ? own : Shape::value_segments - 1;
        TWILL_UNROLL
        for (int next = 0; next < 4; ++next) {
          const auto value = ptx.template load_shared<floats4>(
              slot + swizzled<Shape::value_segments>(p + next, segment));
          TWILL_UNROLL
          for (int i = 0; i < 4 * thread_heads; ++i)
            sum[i / 4][4 * j + i % 4] =
                ::fmaf(weights[i / 4].value[next], value.value[i % 4], sum[i / 4][4 * j + i % 4]);
        }
      }
    }
  }

private:
  TWILL_KERNEL_MEMBER static unsigned query_place(int h, int dimension) {
    return Shape::query_at + static_cast<unsigned>(h * Shape::query_pitch + dimension * 4);
  }
  TWILL_KERNEL_MEMBER static unsigned score_place(int h, int column) {
    return Shape::weights_at + static_cast<unsigned>(h * Shape::score_pitch + column * 4);
  }

  /// Returns to thread i of each half of a warp the sum of x[i] over the 16 threads of its half.
  TWILL_KERNEL_MEMBER float sum_of_16(float (&x)[16]) const {
    TWILL_UNROLL
    for (int step = 0; step < 4; ++step) {
      const int mask = 8 >> step;
      const bool upper = (lane() & mask) != 0;
      TWILL_UNROLL
      for (int i = 0; i < 8; ++i)
        if (i < mask) {
          const float kept = upper ? x[i + mask] : x[i];
          x[i] = kept + ptx.shuffle_xor(upper ? x[i] : x[i + mask], mask);
        }
    }
    return x[0];
  }
};

} // namespace twill::gpu::cuda
