// weight_kind, compute_type: how weights are stored and how products are computed.
//
// The enums are apart from linear.hpp so that the host micro-kernels need no other header.
#pragma once

#include <cstdint>

namespace twill::gpu {

/// How products are computed; weights stay as packed.
enum class compute_type : std::uint8_t {
  f32,  ///< weights widened to f32, f32 products and sums
  f16,  ///< both operands rounded to f16, f32 sums; magnitudes beyond 65504 become infinite
  bf16, ///< both operands rounded to bf16, f32 sums
  /// Activations are rounded to int8 with one scale per 32 columns. Products are summed exactly in
  /// int32 over columns that share the scales of weights and activations, and in f32 beyond.
  /// Products with dense weights are computed as bf16 instead. On NVIDIA GPUs activations have one
  /// scale per 64 or 128 columns with 8-bit weights whose group is a multiple of that number and
  /// which store neither offsets nor zero points.
  int8,
  /// int8 with a second product for the residual. The residual is the rounding error of the
  /// activations, in codes whose scale is 128 times finer. The host multiplies it only in groups of
  /// 32 columns in which a few values are much larger than the others, NVIDIA GPUs everywhere.
  /// Products with dense weights are computed as f32 instead.
  int8x2,
  /// Computes as int8 does. The name is for models whose weights were all rounded to 8 bits before
  /// packing; none of their layers uses int8x2's second product for rounding errors.
  w8a8,
};

const char* name_of(compute_type t);

enum class weight_kind : std::uint8_t {
  f32,
  f16,
  bf16,
  grouped_u4, ///< value = scale * code + offset, code 0..15, one scale and offset per group
  grouped_u8, ///< value = scale * code + offset, code 0..255
  /// 4-bit codes c, each of which stands for the 8-bit code (factor * c + base) / 256, rounded
  /// down, of a grouped_u8 matrix. Factor and base have 16 bits and are shared by code_group
  /// columns; the sum is taken modulo 2^16. The offset is -128 * scale. int8 compute reads 4 bits
  /// per weight and multiplies the 8-bit codes.
  grouped_u4_as_u8,
};

const char* name_of(weight_kind k);

/// Whether weights are codes with scales, which int8 compute can multiply.
constexpr bool is_grouped(weight_kind k) {
  return k >= weight_kind::grouped_u4;
}

} // namespace twill::gpu
