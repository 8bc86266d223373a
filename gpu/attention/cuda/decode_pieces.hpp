// What the threads of a decode attention block share: who has which head, and in which order
// positions are taken.
//
// Where KV is int8, the positions 16i to 16i + 15 are taken in another order: first the even ones.
// A "column" is a place in the chunk in this order.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/attention/cuda/decode_shape.hpp"
#include "gpu/cuda/ptx.hpp"

namespace twill::gpu::cuda {

/// Powers of two that bring a query near 1 and its products back.
struct query_scale {
  float down, up;
};
/// For a query whose largest magnitude is `largest`: that times `down` lies in [1, 2) but for the
/// least and the largest of f32.
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

  /// 16 threads of a warp share a head of a tile.
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
  /// A score of the row that sees positions up to `end`, with its bias for a position.
  TWILL_KERNEL_MEMBER static float with_alibi(float score, float slope, int position, int end) {
    return ::fmaf(slope, static_cast<float>(position - (end - 1)), score);
  }
  /// Two neighbouring elements as two 16-bit parts each, which lie side by side in `first` and in
  /// `second`.
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
  /// The other way round.
  TWILL_KERNEL_MEMBER static constexpr int position_of(int column) {
    if constexpr (!Shape::scaled) return column;
    return (column & ~15) | (column & 7) << 1 | (column & 15) >> 3;
  }
};

} // namespace twill::gpu::cuda
