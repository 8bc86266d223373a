// weight_kind, compute_type: how weights are stored and how products are computed.
//
// Plain enums, apart from linear.hpp so that the host micro-kernels need no other header.
#pragma once

#include <cstdint>

namespace twill::gpu {

/// How products are computed; weights stay as packed.
enum class compute_type : std::uint8_t {
  f32,  ///< weights widened to f32, f32 products and sums
  f16,  ///< both operands rounded to f16, f32 sums; values beyond 65504 become infinite
  bf16, ///< both operands rounded to bf16, f32 sums
  /// Activations rounded to int8 per 32 columns, exact int32 sums per group, f32 sums across
  /// groups. Dense weights are computed as bf16 instead. On NVIDIA GPUs activations are rounded per
  /// 64 or 128 columns where 8-bit weights have groups of multiples of them, and neither offsets
  /// nor zero points of their own.
  int8,
  /// int8 with a second product for the residual: what rounding the activations left over, in codes
  /// 128 times finer, where a few values dominate their 32 columns, on NVIDIA GPUs everywhere.
  /// Dense weights are computed as f32 instead.
  int8x2,
  /// int8 under the name for models whose weights were all rounded to 8 bits before packing, and
  /// where no layer has a residual.
  w8a8,
};

const char* name_of(compute_type t);

enum class weight_kind : std::uint8_t {
  f32,
  f16,
  bf16,
  grouped_u4, ///< value = scale * code + offset, code 0..15, one scale and offset per group
  grouped_u8, ///< value = scale * code + offset, code 0..255
  /// 4-bit codes c that stand for the 8-bit codes (factor * c + base) / 256, rounded down, of a
  /// grouped_u8 matrix. Factor and base have 16 bits, are shared by code_group columns and added
  /// modulo 2^16; the offset is -128 * scale. int8 compute reads 4 bits and multiplies 8.
  grouped_u4_as_u8,
};

const char* name_of(weight_kind k);

/// Codes with scales, which have int8 forms of compute.
constexpr bool is_grouped(weight_kind k) {
  return k >= weight_kind::grouped_u4;
}

} // namespace twill::gpu
