// packed_view: where the parts of a packed weight matrix lie. Plain data, copied into kernels.
//
// The words of this layout, which all files of gpu/linear use:
//   row panel     16 rows (outputs) of the matrix, one SIMD lane each; zeros pad the last panel
//   octet         8 neighbouring columns of a panel
//   group         columns that share a scale and an offset: value = scale * code + offset
//   quant params  the scales, offsets and zero points of the groups
//   code group    columns that share a factor and a base (grouped_u4_as_u8, weight_kind.hpp)
//   segment       columns whose products are summed before scales apply
//   residual      in int8x2 compute, the error of rounding an activation to int8, itself a code
//
// Inside a panel, columns go in octets:
//   f32, f16     8 columns x 16 lanes, column after column
//   bf16         4 column pairs x 16 lanes x 2, so that a lane finds a pair in one 32-bit word
//   grouped_u8   2 vectors of 64 bytes: 16 lanes x 4 columns
//   grouped_u4, grouped_u4_as_u8
//                1 vector of 64 bytes: 16 lanes x 4; low nibbles columns 0-3, high nibbles 4-7
// Dense columns are padded with zeros to a multiple of 8.
//
// Grouped kinds store quant params apart from the codes. For each panel and group these are 16
// scales, then 16 offsets. Where every offset is -zero * scale, a zero point in one byte is stored
// instead of each offset; where every offset is offset_factor * scale, no offset is stored.
//
// With int16_quant_params a panel begins with 16 row scales in f32, and each group has 16 pairs of
// 16-bit integers, (scale, fraction), so that
//   value = row_scale * (scale * (code - middle_code) + offset_fractions * fraction).
// The fraction is thus the value of the middle code, in units of row_scale * offset_fractions.
//
// For each group grouped_u4_as_u8 stores 16 scales in f32 and then, for each code group, a line of
// 16 factors and 16 bases.
#pragma once

#include <cstdint>

#include "gpu/detail/half.hpp"
#include "gpu/linear/weight_kind.hpp"

namespace twill::gpu::detail {

inline constexpr std::int64_t lanes = 16;
inline constexpr std::int64_t column_octet = 8;
/// The number of columns that share an activation scale in int8 compute. (The CUDA kernel of
/// linear/cuda/gemm_i8.hpp differs: there up to 128 columns share a scale.)
inline constexpr std::int64_t activation_group = 32;
/// int8x2 represents an activation as scale * (residual_ratio * code + residual), where the
/// residual is the error of rounding to the code. The scale is chosen such that |code| <= 127, and
/// rounding gives |residual| <= 64. So the sums of products, with codes as with residuals, come no
/// nearer to saturation than in int8.
inline constexpr std::int32_t residual_bits = 7;
inline constexpr std::int32_t residual_ratio = 1 << residual_bits;
/// int8x2 on the host uses the residual (the error of rounding an activation to int8) only in
/// groups of 32 activations in which a few large values make the scale too coarse for the others:
/// groups whose codes have a mean magnitude below 18 (the largest code is 127). In other groups the
/// residual counts as zero and its products are skipped. CUDA kernels use the residual everywhere.
inline constexpr std::int32_t residual_threshold = 18 * activation_group;

struct packed_view {
  weight_kind kind = weight_kind::f32;
  bool scales_f16 = false;         ///< scales and offsets are f16, else f32
  bool offsets_stored = false;     ///< else offset = offset_factor * scale
  bool zero_points = false;        ///< offsets are stored as bytes: offset = -zero * scale
  bool int16_quant_params = false; ///< if set, none of the three flags above is
  std::int32_t offset_factor = 0;  ///< 0, -8 or -128: exact as an integer
  std::int32_t group = 0;          ///< columns per scale
  std::int32_t code_group = 0;     ///< grouped_u4_as_u8: columns per line
  /// The number of columns whose products int8 compute sums in integers before the float scales
  /// apply (a segment): 32 or 16 where these divide a group, else 8.
  std::int32_t segment = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t panels = 0;
  std::int64_t padded_cols = 0;
  const unsigned char* codes = nullptr;
  std::int64_t codes_stride = 0; ///< bytes per row panel
  const unsigned char* scales = nullptr;
  std::int64_t scales_stride = 0; ///< bytes per row panel
  std::int64_t params_stride = 0; ///< bytes per group

  TWILL_KERNEL_MEMBER bool grouped() const { return kind >= weight_kind::grouped_u4; }
};

/// grouped_u4_as_u8: the bytes of a line, which holds the 16 factors and 16 bases of a code group
/// (see the top of this file). A group's 16 scales, which come before its first line, take as many
/// bytes.
inline constexpr std::int64_t code_line_bytes = 64;

/// With int16 quant params (scales and offsets as 16-bit integers): the bytes of the row scales of
/// a panel of 16 rows, and the bytes of the 16 pairs (scale, fraction) of each group, which follow
/// the row scales.
inline constexpr std::int64_t row_scale_bytes = 64, int16_pair_bytes = 64;
/// The code that is subtracted from every 4-bit code where scales and offsets are stored as 16-bit
/// integers (int16 quant params). |code - middle_code| <= 8, so the sum of the products of 32
/// columns fits 16 bits.
inline constexpr std::int32_t middle_code = 8;
/// Where scales and offsets are stored as 16-bit integers (int16 quant params), an offset is stored
/// divided by offset_fractions, which brings the range of the stored offsets near the range of the
/// scales. Kernels multiply the stored value by offset_fractions times the sum of the activations'
/// codes: see host::int16_start().
inline constexpr std::int32_t offset_fraction_bits = 3;
inline constexpr std::int32_t offset_fractions = 1 << offset_fraction_bits;

/// Scale and offset of one group and lane.
struct scale_offset {
  float scale;
  float offset;
};

TWILL_KERNEL_FUNCTION scale_offset group_params(const packed_view& w, std::int64_t panel,
                                                std::int64_t lane, std::int64_t g) {
  const unsigned char* base = w.scales + panel * w.scales_stride + g * w.params_stride;
  scale_offset r{0.0F, 0.0F};
  if (w.int16_quant_params) {
    const float row_scale =
        reinterpret_cast<const float*>(w.scales + panel * w.scales_stride)[lane];
    const auto* pair = reinterpret_cast<const std::int16_t*>(base + row_scale_bytes) + 2 * lane;
    r.scale = row_scale * static_cast<float>(pair[0]);
    r.offset = row_scale * static_cast<float>(offset_fractions * pair[1] - middle_code * pair[0]);
    return r;
  }
  const bool offset = w.offsets_stored && !w.zero_points;
  if (w.scales_f16) {
    const auto* p = reinterpret_cast<const std::uint16_t*>(base) + lane;
    r.scale = f16_to_f32(p[0]);
    if (offset) r.offset = f16_to_f32(p[lanes]);
  } else {
    const auto* p = reinterpret_cast<const float*>(base) + lane;
    r.scale = p[0];
    if (offset) r.offset = p[lanes];
  }
  if (w.zero_points) r.offset = -static_cast<float>(base[w.params_stride - lanes + lane]) * r.scale;
  if (!w.offsets_stored) r.offset = static_cast<float>(w.offset_factor) * r.scale;
  return r;
}

/// The code of one weight of a grouped kind.
TWILL_KERNEL_FUNCTION std::int32_t code_at(const packed_view& w, std::int64_t panel,
                                           std::int64_t lane, std::int64_t col) {
  const unsigned char* base = w.codes + panel * w.codes_stride + lane * 4 + col % 4;
  if (w.kind == weight_kind::grouped_u8) return base[col / 4 * 64];
  const unsigned char pair = base[col / 8 * 64];
  const std::int32_t code = col % 8 < 4 ? pair & 15 : pair >> 4;
  if (w.kind == weight_kind::grouped_u4) return code;
  const auto* line = reinterpret_cast<const std::uint16_t*>(
      w.scales + panel * w.scales_stride + col / w.group * w.params_stride +
      (1 + col % w.group / w.code_group) * code_line_bytes);
  return static_cast<std::uint16_t>(line[lane] * code + line[lanes + lane]) >> 8;
}

/// One weight of a dense kind.
TWILL_KERNEL_FUNCTION float dense_at(const packed_view& w, std::int64_t panel, std::int64_t lane,
                                     std::int64_t col) {
  const unsigned char* base = w.codes + panel * w.codes_stride;
  if (w.kind == weight_kind::f32) return reinterpret_cast<const float*>(base)[col * lanes + lane];
  const auto* halves = reinterpret_cast<const std::uint16_t*>(base);
  if (w.kind == weight_kind::f16) return f16_to_f32(halves[col * lanes + lane]);
  return bf16_to_f32(halves[(col / 2 * lanes + lane) * 2 + col % 2]);
}

} // namespace twill::gpu::detail
