// mma_pieces: converts 16-bit or int8 KV, 16 bytes (a piece) at a time, to operands of mma, for
// decode_attention and prefill_attention.
#pragma once

#include <cstdint>

#include "gpu/attention/cuda/decode_pieces.hpp"

namespace twill::gpu::cuda {

template <class Shape, class Ptx>
struct mma_pieces : decode_pieces<Shape, Ptx> {
  using base = decode_pieces<Shape, Ptx>;
  using base::ptx;

  static constexpr int columns = Shape::columns;

  /// Adds to `d` the products of operand A (`a`) and operand B, which consists of the registers
  /// `low` and `high` that ldmatrix has loaded. With 16-bit KV all products are added to d[0]. With
  /// int8 codes d[0] gets the products of the even bytes and d[1] those of the odd bytes.
  TWILL_KERNEL_MEMBER void multiply_piece(float (&d)[columns][4], const std::uint32_t (&a)[4],
                                          std::uint32_t low, std::uint32_t high) const {
    if constexpr (columns == 1) {
      multiply(d[0], a, low, high);
    } else {
      multiply(d[0], a, codes(low), codes(high));
      multiply(d[1], a, codes(low >> 8), codes(high >> 8));
    }
  }

private:
  TWILL_KERNEL_MEMBER void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t low,
                                    std::uint32_t high) const {
    const std::uint32_t b[2] = {low, high};
    if constexpr (Shape::bf16)
      ptx.mma_bf16(d, a, b);
    else
      ptx.mma_f16(d, a, b);
  }
  /// Converts bytes 0 and 2 of a word of four int8 codes to two f16. The f16 with the bits 0x6480 ^
  /// code is 1024 + 128 + code; subtracting the f16 with the bits 0x6480, which is 1024 + 128,
  /// leaves the code.
  TWILL_KERNEL_MEMBER std::uint32_t codes(std::uint32_t four) const {
    constexpr std::uint32_t and_xor = (0xf0 & 0xcc) ^ 0xaa;
    constexpr std::uint32_t offset = 0x64806480U;
    return ptx.sub_f16x2(ptx.template lop3<and_xor>(four, 0x00ff00ffU, offset), offset);
  }
};

} // namespace twill::gpu::cuda
