// The `Weights` of gemm.hpp for grouped_u8 weights with f16 or bf16 activations.
//
// The four outputs whose codes a lane (thread of a warp) reads become rows lane / 4 and lane / 4 +
// 8 of two tiles of mma's first operand.
//
// A byte permute puts each of a pair of codes into 16 bits of its own, and one instruction turns
// both into code - zero point, exactly.
//
// f16: with 0x64 as its upper byte, a code is the f16 number 1024 + code, from which 1024 + zero
// point is subtracted.
//
// bf16 can represent code - zero point, which is at most 255 away from 0, but not 128 + code. With
// 0 as its upper byte, a code is the bf16 number code * 2^-133: subnormal up to 127, and normal
// from 128 on with the same step. A fused multiply-add by 2^127, the largest power of two, turns it
// into (code - zero point) / 64. So products and the sums of activations are 1/64 of their real
// values until the end (sum_unit), which changes no digit. The multiply-add of bf16 never flushes
// subnormals, because PTX has no .ftz for it. Marlin in vLLM relies on that as well when it
// converts 4-bit floats to bf16.
#pragma once

#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"
#include "gpu/linear/cuda/segment_params.hpp"
#include "gpu/linear/cuda/w8_codes.hpp"

namespace twill::gpu::cuda {

inline constexpr int gemm_w8_sixteen = 16; ///< columns of the smallest groups

/// Whether the kernels of this file can multiply these weights.
inline bool gemm_w8_takes(const detail::packed_view& w) {
  if (w.kind != weight_kind::grouped_u8 || !has_params_form(w, 255)) return false;
  // No format that we know of has groups of 16 with stored offsets.
  const bool offsets = w.offsets_stored && !w.zero_points;
  return w.group % gemm_step == 0 || (w.group == gemm_w8_sixteen && !offsets);
}

/// Columns: the number of columns that are scaled together, a whole group or an equal part of a
/// group. With 16 columns the two halves of each step of 32 columns are scaled separately.
template <class Ptx, bool Bf16, int Columns, params_form Form>
struct gemm_w8_weights : w8_codes<Ptx, Columns == gemm_w8_sixteen> {
  static constexpr bool sixteens = Columns == gemm_w8_sixteen;
  static constexpr int segment_steps = sixteens ? 1 : Columns / gemm_step;
  static constexpr int groups = sixteens ? 2 : 1; ///< groups in a segment
  static constexpr int x_bytes = 2, halves = 2;
  using ptx_type = Ptx;
  using codes_type = w8_codes<Ptx, sixteens>;
  using words = typename codes_type::words;
  using params_type = segment_params<Ptx, Bf16, gemm_step * segment_steps, Form, groups>;
  using part = typename params_type::part;
  static constexpr int steps_ahead = 6;
  static constexpr int sums_padding = 1;
  static constexpr bool swaps_tiles = false;
  static constexpr bool crowded =
      params_type::has_offsets || (sixteens && Form == params_form::f16);
  static constexpr int prefill_tiles = 6;
  static constexpr int prefill_row_warps = 1;
  static constexpr double prefill_small_cost = 1.25;
  static constexpr float sum_unit = Bf16 ? 64 : 1;
  static constexpr std::uint32_t ones = Bf16 ? 0x3c803c80U : 0x3c003c00U; ///< 1 / sum_unit
  static constexpr std::uint32_t code_factor = 0x7f007f00U, zero_factor = 0xff00ff00U; // +-2^127

  params_type params;
  /// For each of the thread's outputs, a pair of 16-bit values that removes the zero point from a
  /// pair of codes: 1024 + zero point in f16, which is subtracted; -zero point / 64 in bf16, which
  /// is added.
  std::uint32_t zeros[groups][4];

  TWILL_KERNEL_MEMBER gemm_w8_weights(Ptx p, const detail::packed_view& w, int pair, int lane,
                                      int warp_base, int segment)
      : codes_type(p, w, pair, lane, warp_base, std::int64_t{segment} * segment_steps),
        params(p, w, panel_of(w, pair, lane), lane / 4 % 4, segment) {
    set_zeros();
  }

  struct fragments {
    std::uint32_t a[2][4]; ///< (tile, register)
  };

  TWILL_KERNEL_MEMBER fragments fragments_of(const words& w, int k) const {
    fragments to;
    TWILL_UNROLL
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t word = w.half[k].word[r], zero = zeros[sixteens ? k : 0][r];
      std::uint32_t* const a = &to.a[r / 2][r % 2];
      a[0] = params.without_zero(this->ptx.permute(word, above, 0x4140), zero, code_factor);
      a[2] = params.without_zero(this->ptx.permute(word, above, 0x4342), zero, code_factor);
    }
    return to;
  }

  TWILL_KERNEL_MEMBER void multiply(const fragments& f, const words4& x, int k, part& to,
                                    float (&sum)[2][4]) const {
    const std::uint32_t b[2] = {x.word[2 * k], x.word[2 * k + 1]};
    if constexpr (sixteens) {
      part of_group;
      params.multiply(f.a, b, ones, of_group);
      params.add(k, of_group, sum);
    } else {
      params.multiply(f.a, b, ones, to);
    }
  }

  /// Converts the zero points of the segment that begins, and loads those of the next segment.
  TWILL_KERNEL_MEMBER void begin_segment(bool more) {
    if (params.zeros_differ()) set_zeros();
    params.advance(more);
  }

  TWILL_KERNEL_MEMBER void end_segment(const part& from, float (&sum)[2][4]) const {
    if constexpr (!sixteens) params.add(0, from, sum);
  }

  /// Loads the scales of the next segment, if there is one.
  TWILL_KERNEL_MEMBER void load_scales() { params.load_scales(); }

private:
  static constexpr std::uint32_t above = Bf16 ? 0 : 0x64U; ///< put above a code

  /// Sets `zeros` from the zero points of the lane's four outputs.
  TWILL_KERNEL_MEMBER void set_zeros() {
    TWILL_UNROLL
    for (int g = 0; g < groups; ++g)
      TWILL_UNROLL
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t pair = params.zero_pair(g, r);
      if constexpr (Bf16)
        zeros[g][r] = this->ptx.fma_bf16x2(pair, zero_factor, 0);
      else
        zeros[g][r] = 0x64006400U | pair;
    }
  }
};

/// Calls f.template operator()<Weights>(), where Weights is the instance of this file's struct for
/// a matrix that gemm_w8_takes() accepts. Groups of 64 columns and more are scaled every 64 columns
/// where the scales are f16 without stored offsets, groups of 16 every 16, and all others every 32.
template <class Ptx, bool Bf16, class F>
void with_gemm_w8_weights(const detail::packed_view& w, const F& f) {
  const bool sixteens = w.group == gemm_w8_sixteen;
  switch (params_form_of(w)) {
  case params_form::offsets_f16:
    return f.template operator()<gemm_w8_weights<Ptx, Bf16, 32, params_form::offsets_f16>>();
  case params_form::offsets_f32:
    return f.template operator()<gemm_w8_weights<Ptx, Bf16, 32, params_form::offsets_f32>>();
  case params_form::f32:
    if (sixteens) return f.template operator()<gemm_w8_weights<Ptx, Bf16, 16, params_form::f32>>();
    return f.template operator()<gemm_w8_weights<Ptx, Bf16, 32, params_form::f32>>();
  case params_form::f16:
    break;
  }
  if (sixteens)
    f.template operator()<gemm_w8_weights<Ptx, Bf16, 16, params_form::f16>>();
  else if (w.group % 64 == 0)
    f.template operator()<gemm_w8_weights<Ptx, Bf16, 64, params_form::f16>>();
  else
    f.template operator()<gemm_w8_weights<Ptx, Bf16, 32, params_form::f16>>();
}

} // namespace twill::gpu::cuda
