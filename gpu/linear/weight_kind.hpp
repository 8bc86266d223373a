// weight_kind, compute_type: how weights are stored and how products are computed.
//
// Plain enums, apart from linear.hpp so that the host micro-kernels need no other header.
#pragma once

#include <cstdint>

namespace twill::gpu {

/// How products are computed; weights stay as packed.
enum class compute_type : std::uint8_t {
  f32,    ///< weights widened to f32, f32 products and sums
  bf16,   ///< both operands rounded to bf16, f32 sums
  int8,   ///< activations rounded to int8 per 32 columns, exact int32 sums per group, f32 across
          ///< groups; dense weights are computed as bf16 instead
  int8x2, ///< the same with activations in two digits, 128 times finer, at less than twice the
          ///< cost; dense weights are computed as f32 instead
  w8a8,   ///< int8, the name of it where all weights were rounded to 8 bits before they were
          ///< packed and no layer takes a second digit
};

const char* name_of(compute_type t);

enum class weight_kind : std::uint8_t {
  f32,
  f16,
  bf16,
  grouped_u4, ///< value = scale * code + offset, code 0..15, one scale and offset per group
  grouped_u8, ///< value = scale * code + offset, code 0..255
  /// grouped_u8 in 4 bits a code c, where its codes are (step * c + base) / 256 rounded down, with
  /// a step and a base of 16 bits for some columns of a group (sums modulo 2^16), and offset = -128
  /// * scale. What int8 compute multiplies is then 8 bits, what is read is 4.
  grouped_u4_as_u8,
};

const char* name_of(weight_kind k);

/// Codes with scales, which have int8 forms of compute.
constexpr bool is_grouped(weight_kind k) {
  return k >= weight_kind::grouped_u4;
}

} // namespace twill::gpu
