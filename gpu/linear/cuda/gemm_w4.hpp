// Weights of 4 bits for gemm.hpp: grouped_u4 as it lies in memory.
//
// A lane reads 16 bytes a step: column octet lane % 4 of outputs 4 * (lane / 4 % 4) to + 3 of panel
// lane / 16. Its four words are rows lane / 4 and lane / 4 + 8 of two tiles of mma's first operand,
// so a tile's rows are not the panels' rows in their order, and the columns of a step are not
// multiplied in their order: each lane has the same octet of weights and activations. Bytes 0 and 2
// of a word, shifted, give a pair of columns at once.
//
// A code becomes the float 2^n + code by setting bits, then a subtraction removes 2^n and the zero
// point exactly. Products of a segment are summed by mma in f32; then its scale applies, in f32.
// With stored offsets a product with ones gives the sum of the activations that they multiply. The
// idea of the conversion: Kim et al., "Who Says Elephants Can't Run", 2022 (arXiv 2211.10017).
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"

namespace twill::gpu::cuda {

/// How scales and offsets are stored: in f16, with zero points in bytes or one for all; the same in
/// f32; and with offsets of the scales' type.
enum class w4_params : std::uint8_t { f16, f32, offsets_f16, offsets_f32 };

inline w4_params w4_params_of(const detail::packed_view& w) {
  if (w.offsets_stored && !w.zero_points)
    return w.scales_f16 ? w4_params::offsets_f16 : w4_params::offsets_f32;
  return w.scales_f16 ? w4_params::f16 : w4_params::f32;
}

/// Whether these weights are ones that the kernels read. Zero points up to 127 are exact in bf16;
/// packing stores no larger ones (most_zero_point()).
inline bool gemm_w4_takes(const detail::packed_view& w) {
  return w.kind == weight_kind::grouped_u4 && !w.int16_quant_params && w.group % gemm_step == 0 &&
         (w.offsets_stored || (w.offset_factor <= 0 && w.offset_factor >= -127));
}

/// SegmentSteps: the columns between two scalings / 32, a whole group or an equal part of one.
template <class Ptx, bool Bf16, int SegmentSteps, w4_params Params>
struct gemm_w4_weights {
  using ptx_type = Ptx;
  static constexpr int segment_steps = SegmentSteps;
  static constexpr int step_bytes = 512;
  static constexpr int steps_ahead = 12;
  static constexpr int sums_padding = 1;
  static constexpr bool crowded = Params == w4_params::offsets_f32;
  static constexpr bool has_offsets =
      Params == w4_params::offsets_f16 || Params == w4_params::offsets_f32;
  static constexpr bool scales_f16 = Params == w4_params::f16 || Params == w4_params::offsets_f16;
  static constexpr int bytes_between = 4 * static_cast<int>(detail::code_line_bytes); ///< of steps
  static constexpr int scale_bytes = scales_f16 ? 2 : 4;
  static constexpr std::uint32_t ones = Bf16 ? 0x3f803f80U : 0x3c003c00U;

  Ptx ptx;
  const detail::packed_view& w;
  const unsigned char* codes; ///< the lane's, of the step that is copied next
  const unsigned char*
      params;          ///< the lane's scales of a group: the next segment's, once one has begun
  int zeros_at;        ///< from there to its zero points
  int params_left = 0; ///< segments that have the same group
  unsigned base;       ///< the lane's bytes of slot 0

  /// Of the lane's four outputs, as they lie: f16 or f32. Those of a segment stay until its end,
  /// when the next one's are loaded; its zero points are loaded when it begins.
  std::uint32_t scale[scale_bytes], offset[scale_bytes];
  std::uint32_t zero = 0; ///< a byte each, of the next segment
  /// What a pair of an output's codes loses: 1024 + zero point in f16; -(128 + zero point) in bf16,
  /// to be added.
  std::uint32_t zeros[4];

  TWILL_KERNEL_MEMBER gemm_w4_weights(Ptx p, const detail::packed_view& view, int pair, int lane,
                                      int warp_base, int segment)
      : ptx(p), w(view), base(static_cast<unsigned>(warp_base + lane * 16)) {
    std::int64_t panel = 2 * std::int64_t{pair} + lane / 16;
    // The second panel of the last pair may be absent: its outputs are not written.
    if (panel >= w.panels) panel = w.panels - 1;
    const int quad = lane / 4 % 4;
    codes = w.codes + panel * w.codes_stride + lane % 4 * detail::code_line_bytes + quad * 16 +
            std::int64_t{segment} * SegmentSteps * bytes_between;
    params = w.scales + panel * w.scales_stride + quad * 4 * scale_bytes;
    zeros_at = static_cast<int>(w.params_stride - detail::lanes) + quad * 4 * (1 - scale_bytes);
    const int of_group = w.group / (gemm_step * SegmentSteps);
    params += segment / of_group * w.params_stride;
    params_left = of_group - segment % of_group;
    set_zeros(has_offsets ? 0 : static_cast<std::uint32_t>(-w.offset_factor) * 0x01010101U);
    if (segment * gemm_step * SegmentSteps < w.cols) {
      load_zero();
      load_scales();
    }
  }

  /// output_of(lane, i, j): the output that rows lane / 4 and lane / 4 + 8 (j) of tile i are.
  TWILL_KERNEL_MEMBER static constexpr int output_of(int lane, int i, int j) {
    return lane / 4 * 4 + 2 * i + j;
  }

  TWILL_KERNEL_MEMBER void copy(int i, int slot) const {
    ptx.copy_async(base + static_cast<unsigned>(slot * step_bytes), codes + i * bytes_between);
  }
  TWILL_KERNEL_MEMBER void skip(int steps) { codes += steps * bytes_between; }

  TWILL_KERNEL_MEMBER words4 read(int slot) const {
    return ptx.template load_shared<words4>(base + static_cast<unsigned>(slot * step_bytes));
  }

  struct fragments {
    std::uint32_t a[2][4]; ///< (tile, register)
  };

  /// Columns 0 to 3 of each octet, or 4 to 7.
  TWILL_KERNEL_MEMBER fragments fragments_of(const words4& words, int k) const {
    fragments to;
    TWILL_UNROLL
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t word = words.word[r];
      std::uint32_t* const a = &to.a[r / 2][r % 2];
      a[0] = without_zero(low_nibbles(word >> (4 * k)), zeros[r]);
      a[2] = without_zero(low_nibbles(word >> (4 * k + 8)), zeros[r]);
    }
    return to;
  }

  /// Sums of a segment.
  struct part {
    float product[2][4] = {};
    float plain[4] = {}; ///< of the activations, in every row
  };

  TWILL_KERNEL_MEMBER void multiply(const fragments& f, const words4& x, int k, part& to,
                                    float (&)[2][4]) const {
    // Pairs of columns 0 and 2, 1 and 3; or 4 and 6, 5 and 7.
    const std::uint32_t b[2] = {ptx.permute(x.word[2 * k], x.word[2 * k + 1], 0x5410),
                                ptx.permute(x.word[2 * k], x.word[2 * k + 1], 0x7632)};
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i)
      mma(to.product[i], f.a[i], b);
    if constexpr (has_offsets) mma(to.plain, {ones, ones, ones, ones}, b);
  }

  /// Takes over a segment's zero points, and loads those of the next.
  TWILL_KERNEL_MEMBER void begin_segment(bool more) {
    if (!has_offsets && w.zero_points) set_zeros(zero);
    if (more && --params_left == 0) {
      params += w.params_stride;
      params_left = w.group / (gemm_step * SegmentSteps);
    }
    load_zero();
  }

  TWILL_KERNEL_MEMBER void end_segment(const part& from, float (&sum)[2][4]) const {
    TWILL_UNROLL
    for (int r = 0; r < 4; ++r) {
      const float factor = value_of(scale, r);
      TWILL_UNROLL
      for (int e = 0; e < 2; ++e) {
        float& to = sum[r / 2][r % 2 * 2 + e];
        to = ::fmaf(factor, from.product[r / 2][r % 2 * 2 + e], to);
        if constexpr (has_offsets) to = ::fmaf(value_of(offset, r), from.plain[e], to);
      }
    }
  }

  /// The next segment's, where there is one.
  TWILL_KERNEL_MEMBER void load_scales() {
    load_values(params, scale);
    if constexpr (has_offsets) load_values(params + scale_bytes * detail::lanes, offset);
  }

private:
  TWILL_KERNEL_MEMBER std::uint32_t low_nibbles(std::uint32_t word) const {
    return ptx.template lop3<0xea>(word, 0x000f000fU, Bf16 ? 0x43004300U : 0x64006400U);
  }
  TWILL_KERNEL_MEMBER std::uint32_t without_zero(std::uint32_t codes_of_pair,
                                                 std::uint32_t zero) const {
    if constexpr (Bf16)
      return ptx.fma_bf16x2(codes_of_pair, ones, zero);
    else
      return ptx.sub_f16x2(codes_of_pair, zero);
  }

  TWILL_KERNEL_MEMBER void mma(float (&d)[4], const std::uint32_t (&a)[4],
                               const std::uint32_t (&b)[2]) const {
    if constexpr (Bf16)
      ptx.mma_bf16(d, a, b);
    else
      ptx.mma_f16(d, a, b);
  }

  /// Sets what codes lose, from the zero points of four outputs in a byte each.
  TWILL_KERNEL_MEMBER void set_zeros(std::uint32_t bytes) {
    TWILL_UNROLL
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t zero = ptx.permute(
          bytes, 0, static_cast<std::uint32_t>(r) | static_cast<std::uint32_t>(r) << 8 | 0x4040U);
      zeros[r] = (Bf16 ? 0xc300c300U : 0x64006400U) | zero;
    }
  }

  TWILL_KERNEL_MEMBER void load_zero() {
    if (!has_offsets && w.zero_points)
      zero = ptx.load(reinterpret_cast<const std::uint32_t*>(params + zeros_at));
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
