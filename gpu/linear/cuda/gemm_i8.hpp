// The `Weights` of gemm.hpp for grouped_u8 weights with int8 activations, multiplied by
// mma.m16n8k32.
//
// A segment is the columns that share an activation scale: 32, 64 or 128 columns, all of one group
// of the weights. to_8_bits.hpp rounds the activations of each row and segment to codes from -127
// to 127 times a scale, and adds up the codes. 128 is subtracted from each code of the weights,
// which makes it an int8. The products with the activations' codes are summed in integers over a
// segment, which is exact. Then sum += weight scale * activation scale * (products - (zero point -
// 128) * sum of the activations' codes) is computed in f32, by one fused multiply-add for each
// output and row. Where weights have offsets instead of zero points, the zero point counts as 0,
// and a second multiply-add adds offset * activation scale * sum of the activations' codes.
//
// Converting integers to f32 is slow on most GPUs, so the integer sums start at the bit pattern of
// the f32 1.5 * 2^23 instead of 0. As long as a sum stays within 2^22 of its start, its bit pattern
// is that of the f32 1.5 * 2^23 + sum. Subtracting the f32 1.5 * 2^23 + (zero point's part) then
// removes both at once and is exact, because the sum of products and the zero point's part are each
// at most 128 * 127 * 128 < 2^21.
//
// Wider segments would need fewer f32 multiply-adds, but activations would lose precision, and the
// weights of a whole segment must fit into shared memory.
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

/// Whether the kernels of this file can multiply these weights.
inline bool gemm_i8_takes(const detail::packed_view& w) {
  return w.kind == weight_kind::grouped_u8 && has_params_form(w, 255) && w.group % gemm_step == 0;
}

/// The number of columns of a segment, which share an activation scale, for weights that
/// gemm_i8_takes() accepts: 32 where each group stores an offset or a zero point, else the largest
/// of 128, 64 and 32 that divides a group.
inline int gemm_i8_columns(const detail::packed_view& w) {
  if (w.offsets_stored) return gemm_step;
  if (w.group % 128 == 0) return 128;
  return w.group % 64 == 0 ? 64 : gemm_step;
}

/// The arguments of the second product of int8x2, which multiplies the residuals of the activations
/// (the errors of rounding them to int8, see to_8_bits.hpp) and adds the result to the output of
/// the first product.
inline gemm_args of_residual(gemm_args first) {
  first.bias = nullptr;
  first.accumulate = true;
  return first;
}

/// Columns: the number of columns of a segment. ZerosDiffer: each group stores its own zero points.
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
  static constexpr float middle = 0x1.8p23F; ///< the f32 whose bits the integer sums start at
  static constexpr std::int32_t middle_bits = 0x4b400000;

  /// The sums of a segment's products; each starts at middle_bits instead of 0.
  struct part {
    std::int32_t product[2][4] = {{middle_bits, middle_bits, middle_bits, middle_bits},
                                  {middle_bits, middle_bits, middle_bits, middle_bits}};
  };

  params_type params;
  /// The segment's zero points minus 128; a single value where all groups share one zero point.
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

  /// Converts the zero points of the segment that begins, and loads those of the next segment.
  TWILL_KERNEL_MEMBER void begin_segment(bool more) {
    if constexpr (ZerosDiffer) set_zeros();
    params.advance(more);
  }

  /// Scales the sums over a segment (the columns that share an activation scale) and adds them to
  /// `sum`. `rows` holds the scale and the sum of the activations' codes for each of the thread's
  /// two rows.
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

  /// Loads the scales of the next segment, if there is one.
  TWILL_KERNEL_MEMBER void load_scales() { params.load_scales(); }

private:
  TWILL_KERNEL_MEMBER void set_zeros() {
    TWILL_UNROLL
    for (int r = 0; r < (ZerosDiffer ? 4 : 1); ++r)
      zeros[r] = static_cast<float>(params.zero[0] >> (8 * r) & 255U) - 128;
  }
};

/// Calls f.template operator()<Weights>(), where Weights is the instance of this file's struct for
/// a matrix that gemm_i8_takes() accepts. Each segment (the columns that share an activation scale)
/// has gemm_i8_columns() columns.
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
