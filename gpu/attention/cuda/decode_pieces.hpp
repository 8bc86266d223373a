// decode_pieces: helpers of a decode attention block, which map threads to heads and positions to
// columns. A piece is as many positions as 16 bytes of KV hold (decode_shape.hpp).
//
// A "column" is the place of a position in the order in which a chunk's positions are processed.
// Where KV is int8, positions 16i to 16i + 15 are reordered: the even ones come first.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/attention/cuda/decode_shape.hpp"
#include "gpu/cuda/ptx.hpp"

namespace twill::gpu::cuda {

/// Two powers of two: `down` scales a query to magnitudes near 1, and `up` undoes this scaling in
/// the products of the query.
struct query_scale {
  float down, up;
};
/// The factors for a query whose largest magnitude is `largest`: largest * down lies in [1, 2),
/// except near the ends of the range of f32.
TWILL_KERNEL_INLINE query_scale query_scale_of(float largest) {
  const std::uint32_t exponent = detail::f32_to_bits(largest) & 0x7f800000U;
  if (exponent == 0 || exponent >= 253U << 23) return {1, 1};
  return {detail::bits_to_f32((254U << 23) - exponent), detail::bits_to_f32(exponent)};
}

template <class Shape, class Ptx>
struct decode_pieces {
  Ptx ptx;

  TWILL_KERNEL_MEMBER int warp() const { return ptx.thread() / 32; }
  TWILL_KERNEL_MEMBER int lane() const { return ptx.thread() % 32; }
  TWILL_KERNEL_MEMBER static float larger(float a, float b) { return a > b ? a : b; }

  /// The head of a tile that this thread shares with 15 other threads of its warp.
  TWILL_KERNEL_MEMBER int shared_head() const { return warp() + 4 * (lane() / 16); }
  TWILL_KERNEL_MEMBER float largest_of_16(float x) const {
    for (int mask = 8; mask > 0; mask /= 2)
      x = larger(x, ptx.shuffle_xor(x, mask));
    return x;
  }

  TWILL_KERNEL_MEMBER static std::uint16_t narrow(float x) {
    return Shape::bf16 ? detail::f32_to_bf16(x) : detail::f32_to_f16(x);
  }
  TWILL_KERNEL_MEMBER static float widen(std::uint16_t x) {
    return Shape::bf16 ? detail::bf16_to_f32(x) : detail::f16_to_f32(x);
  }
  /// The score plus ALiBi's bias for `position`, for a row that sees positions up to `end`.
  TWILL_KERNEL_MEMBER static float with_alibi(float score, float slope, int position, int end) {
    return ::fmaf(slope, static_cast<float>(position - (end - 1)), score);
  }
  /// Splits each of two neighbouring f32 elements into two 16-bit parts, whose sum is nearly the
  /// element. `first` gets the first parts of both elements and `second` the second parts.
  TWILL_KERNEL_MEMBER void split(float low, float high, std::uint32_t& first,
                                 std::uint32_t& second) const {
    first = narrow2(low, high);
    second = narrow2(ptx.add(low, -widen(static_cast<std::uint16_t>(first))),
                     ptx.add(high, -widen(static_cast<std::uint16_t>(first >> 16))));
  }
  TWILL_KERNEL_MEMBER std::uint32_t narrow2(float low, float high) const {
    if constexpr (Shape::bf16) return ptx.narrow_bf16x2(low, high);
    return ptx.narrow_f16x2(low, high);
  }
  /// The column of a position, both counted from the beginning of the chunk.
  TWILL_KERNEL_MEMBER static int column_of(int position) {
    if constexpr (!Shape::scaled) return position;
    return (position & ~15) | (position & 1) << 3 | (position & 15) >> 1;
  }
  /// The position of a column, both counted from the beginning of the chunk.
  TWILL_KERNEL_MEMBER static constexpr int position_of(int column) {
    if constexpr (!Shape::scaled) return column;
    return (column & ~15) | (column & 7) << 1 | (column & 15) >> 3;
  }
};

} // namespace twill::gpu::cuda
