// What the threads of a decode attention block share: who has which head, how numbers become two
// 16-bit parts, and products of what lies in shared memory.
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
  static constexpr int columns = Shape::columns;

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
    if constexpr (columns == 1) return position;
    return (position & ~15) | (position & 1) << 3 | (position & 15) >> 1;
  }
  /// The other way round.
  TWILL_KERNEL_MEMBER static int position_of(int column) {
    if constexpr (columns == 1) return column;
    return (column & ~15) | (column & 7) << 1 | (column & 15) >> 3;
  }

  TWILL_KERNEL_MEMBER void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t low,
                                    std::uint32_t high) const {
    const std::uint32_t b[2] = {low, high};
    if constexpr (Shape::bf16)
      ptx.mma_bf16(d, a, b);
    else
      ptx.mma_f16(d, a, b);
  }
  /// d[0] += a * b, where b's halves are one register of ldmatrix each. Of codes, d[0] takes the
  /// even bytes and d[1] the odd ones.
  TWILL_KERNEL_MEMBER void multiply_piece(float (&d)[columns][4], const std::uint32_t (&a)[4],
                                          std::uint32_t low, std::uint32_t high) const {
    if constexpr (columns == 1) {
      multiply(d[0], a, low, high);
    } else {
      multiply(d[0], a, codes(low), codes(high));
      multiply(d[1], a, codes(low >> 8), codes(high >> 8));
    }
  }
  /// Bytes 0 and 2 of four codes as two f16. 1024 + 128 + code is the f16 of the bits 0x6480 ^
  /// code.
  TWILL_KERNEL_MEMBER std::uint32_t codes(std::uint32_t four) const {
    constexpr std::uint32_t and_xor = (0xf0 & 0xcc) ^ 0xaa;
    constexpr std::uint32_t offset = 0x64806480U;
    return ptx.sub_f16x2(ptx.template lop3<and_xor>(four, 0x00ff00ffU, offset), offset);
  }

  /// A rows of 16 columns of a tile in shared memory: rows of `pitch` bytes.
  TWILL_KERNEL_MEMBER void load_rows(std::uint32_t (&a)[4], unsigned at, int pitch,
                                     int column) const {
    ptx.template load_matrices<false>(
        a, at + static_cast<unsigned>(lane() % 16 * pitch + (column + lane() / 16 * 8) * 2));
  }

  /// Stores x in two parts, the second `second` bytes behind the first.
  TWILL_KERNEL_MEMBER void store_parts(unsigned at, int second, float x) {
    const std::uint16_t part = narrow(x);
    ptx.store_shared(at, part);
    ptx.store_shared(at + static_cast<unsigned>(second), narrow(x - widen(part)));
  }
};

} // namespace twill::gpu::cuda
