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

/// Two neighbouring columns.
struct alignas(8) floats2 {
  float value[2];
};

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
  /// The column of a position, both counted from the beginning of the chunk.
  TWILL_KERNEL_MEMBER static int column_of(int position) {
    if constexpr (!Shape::scaled) return position;
    return (position & ~15) | (position & 1) << 3 | (position & 15) >> 1;
  }
  /// The other way round.
  TWILL_KERNEL_MEMBER static int position_of(int column) {
    if constexpr (!Shape::scaled) return column;
    return (column & ~15) | (column & 7) << 1 | (column & 15) >> 3;
  }
};

} // namespace twill::gpu::cuda
