// segment_params: the scales, zero points and offsets of grouped weights for gemm.hpp. A thread
// holds those of four neighbouring outputs of a row panel (16 outputs), for one segment at a time.
//
// A segment is a run of columns after which sums are scaled: a whole quantisation group of the
// weights, an equal part of a group, or two groups of 16. mma sums the products of a group in f32,
// and the sum is then multiplied by the group's scale in f32. With stored offsets, an mma of the
// activations with ones gives the sum of the activations, which is multiplied by the offset. Scales
// are loaded one segment ahead.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"

namespace twill::gpu::cuda {

/// How scales and offsets are stored. f16 and f32: scales of this type, with zero points in bytes
/// or one zero point for the whole matrix. offsets_f16 and offsets_f32: scales and offsets of this
/// type.
enum class params_form : std::uint8_t { f16, f32, offsets_f16, offsets_f32 };

inline params_form params_form_of(const detail::packed_view& w) {
  if (w.offsets_stored && !w.zero_points)
    return w.scales_f16 ? params_form::offsets_f16 : params_form::offsets_f32;
  return w.scales_f16 ? params_form::f16 : params_form::f32;
}

/// Whether the scales are stored in one of the ways that params_form lists, with zero points of at
/// most `most_zero`.
inline bool has_params_form(const detail::packed_view& w, int most_zero) {
  return !w.int16_quant_params &&
         (w.offsets_stored || (w.offset_factor <= 0 && w.offset_factor >= -most_zero));
}

/// Columns: the number of columns of a segment (see the top of this file). Groups: the number of
/// quantisation groups in a segment, or 1 where a segment is one group or a part of one.
template <class Ptx, bool Bf16, int Columns, params_form Form, int Groups = 1>
struct segment_params {
  static constexpr bool has_offsets =
      Form == params_form::offsets_f16 || Form == params_form::offsets_f32;
  static constexpr bool scales_f16 = Form == params_form::f16 || Form == params_form::offsets_f16;
  static constexpr int scale_bytes = scales_f16 ? 2 : 4;

  Ptx ptx;
  const detail::packed_view& w;
  /// Address of the thread's scales in the first group of a segment (see the top of this file).
  /// Once a segment has begun, `at` belongs to the next segment.
  const unsigned char* at;
  int zeros_at; ///< bytes from `at` to the lane's zero points
  int left = 0; ///< segments left in the group of `at`
  /// The scales and offsets of the thread's four outputs as stored, f16 or f32. They belong to the
  /// current segment (see the top of this file) until its end, when load_scales() loads those of
  /// the next segment.
  std::uint32_t scale[Groups][scale_bytes], offset[Groups][scale_bytes];
  std::uint32_t
      zero[Groups]; ///< four zero points, a byte each: of the next segment, or of all segments

  /// For outputs 4 * quad to 4 * quad + 3 of a panel, starting with segment `segment`.
  TWILL_KERNEL_MEMBER segment_params(Ptx p, const detail::packed_view& view, std::int64_t panel,
                                     int quad, int segment)
      : ptx(p), w(view), at(view.scales + panel * view.scales_stride + quad * 4 * scale_bytes),
        zeros_at(static_cast<int>(view.params_stride - detail::lanes) +
                 quad * 4 * (1 - scale_bytes)) {
    if constexpr (Groups == 1) {
      const int of_group = w.group / Columns;
      at += segment / of_group * w.params_stride;
      left = of_group - segment % of_group;
    } else {
      at += segment * Groups * w.params_stride;
    }
    TWILL_UNROLL
    for (int g = 0; g < Groups; ++g)
      zero[g] = has_offsets ? 0 : static_cast<std::uint32_t>(-w.offset_factor) * 0x01010101U;
    if (segment * Columns < w.cols) {
      load_zeros();
      load_scales();
    }
  }

  /// Whether each group stores its own zero points.
  TWILL_KERNEL_MEMBER bool zeros_differ() const { return !has_offsets && w.zero_points; }

  /// Moves on to the next segment, if there are `more`, and loads its zero points.
  TWILL_KERNEL_MEMBER void advance(bool more) {
    if constexpr (Groups == 1) {
      if (more && --left == 0) {
        at += w.params_stride;
        left = w.group / Columns;
      }
    } else if (more) {
      at += Groups * w.params_stride;
    }
    load_zeros();
  }

  /// Loads the scales and offsets of the segment that advance() has moved on to.
  TWILL_KERNEL_MEMBER void load_scales() {
    TWILL_UNROLL
    for (int g = 0; g < Groups; ++g) {
      load_values(at + g * w.params_stride, scale[g]);
      if constexpr (has_offsets)
        load_values(at + g * w.params_stride + scale_bytes * detail::lanes, offset[g]);
    }
  }

  /// The scale and the offset of the thread's output r (0 to 3) in the current segment of columns;
  /// they are valid until load_scales().
  TWILL_KERNEL_MEMBER float scale_of(int r) const { return value_of(scale[0], r); }
  TWILL_KERNEL_MEMBER float offset_of(int r) const { return value_of(offset[0], r); }

  /// The sums of a group's products.
  struct part {
    float product[2][4] = {};
    float plain[4] = {}; ///< sums of the activations; equal for all outputs
  };

  /// Adds the products of 16 columns, half a step. `ones` is a pair of 16-bit values that represent
  /// 1, by which the activations are multiplied for their plain sums.
  TWILL_KERNEL_MEMBER void multiply(const std::uint32_t (&a)[2][4], const std::uint32_t (&b)[2],
                                    std::uint32_t ones, part& to) const {
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i)
      mma(to.product[i], a[i], b);
    if constexpr (has_offsets) mma(to.plain, {ones, ones, ones, ones}, b);
  }

  /// Multiplies a group's sums by its scale (and offset) and adds them to `sum`.
  TWILL_KERNEL_MEMBER void add(int group, const part& from, float (&sum)[2][4]) const {
    TWILL_UNROLL
    for (int r = 0; r < 4; ++r) {
      const float factor = value_of(scale[group], r);
      TWILL_UNROLL
      for (int e = 0; e < 2; ++e) {
        float& to = sum[r / 2][r % 2 * 2 + e];
        to = ::fmaf(factor, from.product[r / 2][r % 2 * 2 + e], to);
        if constexpr (has_offsets) to = ::fmaf(value_of(offset[group], r), from.plain[e], to);
      }
    }
  }

  /// The zero point of output r twice, each in the low byte of 16 bits.
  TWILL_KERNEL_MEMBER std::uint32_t zero_pair(int group, int r) const {
    return ptx.permute(zero[group], 0, static_cast<std::uint32_t>(r | r << 8) | 0x4040U);
  }

  /// Removes the zero point from a pair of codes. The result is codes * factor + lost in bf16 and
  /// codes - lost in f16. The callers compute `lost` from the zero point (`zeros` in gemm_w4.hpp
  /// and gemm_w8.hpp) such that each result is code - zero point, or a 64th of this for 8-bit codes
  /// in bf16.
  TWILL_KERNEL_MEMBER std::uint32_t without_zero(std::uint32_t codes_of_pair, std::uint32_t lost,
                                                 std::uint32_t factor) const {
    if constexpr (Bf16)
      return ptx.fma_bf16x2(codes_of_pair, factor, lost);
    else
      return ptx.sub_f16x2(codes_of_pair, lost);
  }

private:
  TWILL_KERNEL_MEMBER void mma(float (&d)[4], const std::uint32_t (&a)[4],
                               const std::uint32_t (&b)[2]) const {
    if constexpr (Bf16)
      ptx.mma_bf16(d, a, b);
    else
      ptx.mma_f16(d, a, b);
  }

  TWILL_KERNEL_MEMBER void load_zeros() {
    if (!zeros_differ()) return;
    TWILL_UNROLL
    for (int g = 0; g < Groups; ++g)
      zero[g] =
          ptx.load(reinterpret_cast<const std::uint32_t*>(at + g * w.params_stride + zeros_at));
  }
  TWILL_KERNEL_MEMBER void load_values(const unsigned char* from,
                                       std::uint32_t (&to)[scale_bytes]) const {
    using words = std::conditional_t<scales_f16, words2, words4>;
    const auto values = ptx.load(reinterpret_cast<const words*>(from));
    TWILL_UNROLL
    for (int i = 0; i < scale_bytes; ++i)
      to[i] = values.word[i];
  }
  TWILL_KERNEL_MEMBER static float value_of(const std::uint32_t (&from)[scale_bytes], int i) {
    if constexpr (scales_f16)
      return detail::f16_to_f32(static_cast<std::uint16_t>(from[i / 2] >> (16 * (i % 2))));
    else
      return detail::bits_to_f32(from[i]);
  }
};

} // namespace twill::gpu::cuda
