// decode_softmax: softmax over one chunk (256 positions) in a block of decode attention. It
// replaces the scores in shared memory by weights.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/attention/cuda/decode_pieces.hpp"

namespace twill::gpu::cuda {

template <class Shape, class Ptx>
struct decode_softmax : decode_pieces<Shape, Ptx> {
  using base = decode_pieces<Shape, Ptx>;
  using base::lane, base::larger, base::largest_of_16, base::ptx, base::shared_head, base::split,
      base::warp;

  int first, last; ///< the chunk's sub-tiles [first, last) have scores

  /// Turns the scores of a tile of eight heads for the chunk into softmax weights, in place.
  /// Sixteen threads share a head (shared_head()); number j of them has the columns 32i + 2j and
  /// 32i + 2j + 1. A column is a position's place in the order of decode_pieces.hpp. A barrier() is
  /// needed before this call and after it.
  TWILL_KERNEL_MEMBER void take(int tile) {
    constexpr int pairs = decode_chunk / 32;
    const unsigned of_tile = Shape::weights_at + static_cast<unsigned>(tile * Shape::weight_bytes);
    float x[pairs][2];
    float top = -INFINITY;
    TWILL_UNROLL
    for (int i = 0; i < pairs; ++i) {
      floats2 both{{-INFINITY, -INFINITY}};
      if (is_taken(i))
        both = ptx.template load_shared<floats2>(
            of_tile +
            static_cast<unsigned>(shared_head() * Shape::score_pitch + column_of_pair(i) * 4));
      TWILL_UNROLL
      for (int c = 0; c < 2; ++c) {
        x[i][c] = both.value[c];
        top = larger(top, both.value[c]);
      }
    }
    top = largest_of_16(top);
    float sum = 0;
    TWILL_UNROLL
    for (int i = 0; i < pairs; ++i) {
      TWILL_UNROLL
      for (int c = 0; c < 2; ++c) {
        x[i][c] = ::expf(ptx.add(x[i][c], -top));
        sum = ptx.add(sum, x[i][c]);
      }
    }
    TWILL_UNROLL
    for (int mask = 8; mask > 0; mask /= 2)
      sum = ptx.add(sum, ptx.shuffle_xor(sum, mask));
    if (lane() % 16 == 0)
      ptx.store_shared(Shape::tops_at +
                           static_cast<unsigned>(tile * decode_tile_heads + shared_head()) * 8,
                       floats2{{top, sum}});
    ptx.barrier(); // all threads have read the scores, which are overwritten now
    float over = 1;
    if constexpr (Shape::scaled) over = 1.0f / largest_value_scale();
    TWILL_UNROLL
    for (int i = 0; i < pairs; ++i) {
      if (!is_taken(i)) continue;
      const int column = column_of_pair(i);
      const unsigned row = of_tile + static_cast<unsigned>(shared_head() * Shape::weight_pitch);
      if constexpr (Shape::f32) {
        ptx.store_shared(row + static_cast<unsigned>(column) * 4, floats2{{x[i][0], x[i][1]}});
        continue;
      }
      if constexpr (Shape::scaled) {
        TWILL_UNROLL
        for (int c = 0; c < 2; ++c)
          x[i][c] *= over * ptx.template load_shared<float>(Shape::value_scales_at +
                                                            static_cast<unsigned>(column + c) * 4);
      }
      std::uint32_t first_parts, second_parts;
      split(x[i][0], x[i][1], first_parts, second_parts);
      const unsigned at = row + static_cast<unsigned>(column) * 2;
      ptx.store_shared(at, first_parts);
      ptx.store_shared(at + 8 * Shape::weight_pitch, second_parts);
    }
  }
  /// The first of the thread's pair of columns among columns [32i, 32i + 32).
  TWILL_KERNEL_MEMBER int column_of_pair(int i) const { return 32 * i + lane() % 16 * 2; }
  /// Whether the pair of columns `i` lies in a sub-tile that the row sees.
  TWILL_KERNEL_MEMBER bool is_taken(int i) const {
    // All pairs of an i lie in the same sub-tile of 32 positions or more.
    const int sub_tile = (Shape::positions < 32 ? column_of_pair(i) : 32 * i) / Shape::positions;
    return sub_tile >= first && sub_tile < last;
  }

  /// The largest of the chunk's value scales, or 1 where all are 0. Before a softmax weight is
  /// rounded, it is multiplied by its value's scale divided by this number, so that f16 can hold it
  /// whatever the magnitude of the values.
  TWILL_KERNEL_MEMBER float largest_value_scale() const {
    float largest = 0;
    for (int w = 0; w < Shape::warps; ++w)
      largest = larger(largest, ptx.template load_shared<float>(Shape::largest_at +
                                                                static_cast<unsigned>(w) * 4));
    return largest == 0 ? 1.0f : largest;
  }
};

} // namespace twill::gpu::cuda
