// Weights of 8 bits for gemm.hpp with int8 activations: grouped_u8 as it lies in memory, multiplied
// by mma.m16n8k32.
//
// A segment has 32, 64 or 128 columns of one group of the weights. to_8_bits.hpp rounds each row's
// activations of a segment to codes of -127 to 127 times a scale, and adds up the codes. The
// products of codes - 128, which are int8 as well, are summed in integers over a segment, which is
// exact. Then
//   sum += weight scale * activation scale
//          * (products - (zero point - 128) * sum of the activations' codes)
// in f32: a fused multiply-add for each output and row. Where weights have offsets instead of zero
// points, which then count as 0, a second multiply-add adds offset * activation scale * sum of the
// activations' codes.
//
// Conversions of integers to f32 are slow on most GPUs, so the sums begin at the bits of 1.5 * 2^23
// instead of 0: within 2^22 of that, the bits of a sum are those of the f32 1.5 * 2^23 + sum, from
// which 1.5 * 2^23 and the zero point's part are subtracted at once, exactly: each of the two parts
// is at most 128 * 127 * 128 < 2^21.
//
// Wider segments would need fewer multiply-adds in f32. But activations would lose precision, and
// the steps of a segment must fit into the slots of shared memory.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/half.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"
#include "gpu/linear/cuda/segment_params.hpp"
#include "gpu/linear/cuda/w8_codes.hpp"

namespace twill::gpu::cuda {

/// Whether these weights are ones that the kernels read.
inline bool gemm_i8_takes(const detail::packed_view& w) {
  return w.kind == weight_kind::grouped_u8 && has_params_form(w, 255) && w.group % gemm_step == 0;
}

/// Columns of a segment of weights that gemm_i8_takes(), whose activations share a scale: 32 where
/// groups have offsets or zero points of their own, else as many of 128, 64 and 32 as divide a
/// group.
inline int gemm_i8_columns(const detail::packed_view& w) {
  if (w.offsets_stored) return gemm_step;
  if (w.group % 128 == 0) return 128;
  return w.group % 64 == 0 ? 64 : gemm_step;
}

/// The second product of int8x2, of the residuals: what it gives is added to the first.
inline gemm_args of_residual(gemm_args first) {
  first.bias = nullptr;
  first.accumulate = true;
  return first;
}

/// Columns: of a segment. ZerosDiffer: groups have zero points of their own.
template <class Ptx, int Columns, params_form Form, bool ZerosDiffer>
struct gemm_i8_weights : w8_codes<Ptx, false> {
  static constexpr int segment_steps = Columns / gemm_step;
  static constexpr int x_bytes = 1, halves = 1;
  static constexpr bool sixteens = false;
  static constexpr bool swaps_tiles = false;
  static constexpr bool crowded = segment_steps > 1;
  using ptx_type = Ptx;
  using codes_type = w8_codes<Ptx, false>;
  using words = typename codes_type::words;
  using params_type = segment_params<Ptx, false, Columns, Form>;
  static constexpr int steps_ahead = segment_steps == 4 ? 4 : 6;
  static constexpr int sums_padding = 1;
  static constexpr int prefill_tiles = 6;
  static constexpr int prefill_row_warps = 1;
  static constexpr double prefill_small_cost = 1.25;
  static constexpr float sum_unit = 1;
  static constexpr float middle = 0x1.8p23F; ///< the f32 with the bits at which sums begin
  static constexpr std::int32_t middle_bits = 0x4b400000;

  /// Sums of a segment's products, above middle_bits.
  struct part {
    std::int32_t product[2][4] = {{middle_bits, middle_bits, middle_bits, middle_bits},
                                  {middle_bits, middle_bits, middle_bits, middle_bits}};
  };

  params_type params;
  /// The segment's zero points - 128, or the first is that of all.
  float zeros[ZerosDiffer ? 4 : 1];

  TWILL_KERNEL_MEMBER gemm_i8_weights(Ptx p, const detail::packed_view& w, int pair, int lane,
                                      int warp_base, int segment)
      : codes_type(p, w, pair, lane, warp_base, std::int64_t{segment} * segment_steps),
        params(p, w, panel_of(w, pair, lane), lane / 4 % 4, segment) {
    set_zeros();
  }

  struct fragments {
    std::uint32_t a[2][4]; ///< (tile, register)
  };

  TWILL_KERNEL_MEMBER fragments fragments_of(const words& w, int) const {
    fragments to;
    TWILL_UNROLL
    for (int r = 0; r < 4; ++r)
      TWILL_UNROLL
    for (int k = 0; k < 2; ++k)
      to.a[r / 2][r % 2 + 2 * k] = w.half[k].word[r] ^ 0x80808080U; // code - 128
    return to;
  }

  TWILL_KERNEL_MEMBER void multiply(const fragments& f, const words2& x, int, part& to,
                                    float (&)[2][4]) const {
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i) {
      std::int32_t sum[4];
      this->ptx.mma_s8(sum, f.a[i], x.word, to.product[i]);
      TWILL_UNROLL
      for (int j = 0; j < 4; ++j)
        to.product[i][j] = sum[j];
    }
  }

  /// Takes over a segment's zero points, and loads those of the next.
  TWILL_KERNEL_MEMBER void begin_segment(bool more) {
    if constexpr (ZerosDiffer) set_zeros();
    params.advance(more);
  }

  /// Scales a segment's sums and adds them. rows: scale and sum of both rows' activations.
  TWILL_KERNEL_MEMBER void end_segment(const part& from, const floats4& rows,
                                       float (&sum)[2][4]) const {
    TWILL_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float row_scale = rows.value[2 * e], codes = rows.value[2 * e + 1];
      TWILL_UNROLL
      for (int r = 0; r < 4; ++r) {
        const float lost = ::fmaf(zeros[ZerosDiffer ? r : 0], codes, middle);
        const auto bits = static_cast<std::uint32_t>(from.product[r / 2][r % 2 * 2 + e]);
        float& to = sum[r / 2][r % 2 * 2 + e];
        to = ::fmaf(params.scale_of(r) * row_scale, detail::bits_to_f32(bits) - lost, to);
        if constexpr (params_type::has_offsets)
          to = ::fmaf(params.offset_of(r), row_scale * codes, to);
      }
    }
  }

  /// The next segment's, where there is one.
  TWILL_KERNEL_MEMBER void load_scales() { params.load_scales(); }

private:
  TWILL_KERNEL_MEMBER void set_zeros() {
    TWILL_UNROLL
    for (int r = 0; r < (ZerosDiffer ? 4 : 1); ++r)
      zeros[r] = static_cast<float>(params.zero[0] >> (8 * r) & 255U) - 128;
  }
};

/// Calls f.template operator()<Weights>() for the weights of a matrix that gemm_i8_takes(), with
/// segments of gemm_i8_columns().
template <class Ptx, class F>
void with_gemm_i8_weights(const detail::packed_view& w, const F& f) {
  const auto with_form = [&]<params_form Form>() {
    if (w.zero_points) return f.template operator()<gemm_i8_weights<Ptx, 32, Form, true>>();
    switch (gemm_i8_columns(w)) {
    case 128:
      return f.template operator()<gemm_i8_weights<Ptx, 128, Form, false>>();
    case 64:
      return f.template operator()<gemm_i8_weights<Ptx, 64, Form, false>>();
    default:
      return f.template operator()<gemm_i8_weights<Ptx, 32, Form, false>>();
    }
  };
  switch (params_form_of(w)) {
  case params_form::offsets_f16:
    return f.template operator()<gemm_i8_weights<Ptx, 32, params_form::offsets_f16, false>>();
  case params_form::offsets_f32:
    return f.template operator()<gemm_i8_weights<Ptx, 32, params_form::offsets_f32, false>>();
  case params_form::f32:
    return with_form.template operator()<params_form::f32>();
  case params_form::f16:
    return with_form.template operator()<params_form::f16>();
  }
}

} // namespace twill::gpu::cuda
