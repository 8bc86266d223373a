// The `Weights` of gemm.hpp for grouped_u4 weights. A step multiplies 32 columns (gemm.hpp);
// packed_view.hpp explains row panels and octets (8 columns).
//
// A lane (thread of a warp) reads 16 bytes of weights per step: the 8 columns of octet lane % 4,
// for 4 outputs of panel lane / 16 from 4 * (lane / 4 % 4) on. The four words (one per output)
// become rows lane / 4 and lane / 4 + 8 of two tiles of mma's first operand. So the rows of a tile
// are the panels' rows in another order. The columns of a step are also multiplied in another
// order: each lane multiplies its own octet of the weights by the same octet of the activations. A
// byte permute moves two neighbouring columns to the low bytes of a pair of 16-bit values; the low
// nibbles of these bytes are two of columns 0 to 3, the high nibbles two of columns 4 to 7.
//
// A code becomes a 16-bit float by an OR with the bits of 2^n (1024 in f16, 128 in bf16), which
// gives 2^n + code; a subtraction then removes 2^n and the zero point exactly. This conversion
// follows Kim et al., "Who Says Elephants Can't Run", 2022 (arXiv 2211.10017).
#pragma once

#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"
#include "gpu/linear/cuda/segment_params.hpp"

namespace twill::gpu::cuda {

/// Whether the kernels of this file can multiply these weights. Zero points up to 127 are exact in
/// bf16, and packing stores no larger ones (most_zero_point()).
inline bool gemm_w4_takes(const detail::packed_view& w) {
  return w.kind == weight_kind::grouped_u4 && w.group % gemm_step == 0 && has_params_form(w, 127);
}

/// SegmentSteps: the number of steps of 32 columns in a segment, the run of columns that is scaled
/// at once: a whole group or an equal part of a group.
template <class Ptx, bool Bf16, int SegmentSteps, params_form Form>
struct gemm_w4_weights {
  static constexpr int x_bytes = 2, halves = 2;
  using ptx_type = Ptx;
  using params_type = segment_params<Ptx, Bf16, gemm_step * SegmentSteps, Form>;
  using part = typename params_type::part;
  static constexpr int segment_steps = SegmentSteps;
  static constexpr int step_bytes = 512;
  static constexpr int steps_ahead = 12;
  static constexpr int sums_padding = 1;
  static constexpr bool swaps_tiles = false;
  static constexpr bool crowded = params_type::has_offsets;
  static constexpr int prefill_tiles = 8;
  static constexpr int prefill_row_warps = 1;
  static constexpr double prefill_small_cost = SegmentSteps == 4 ? 1.3 : 1.5;
  static constexpr bool sixteens = false;
  static constexpr float sum_unit = 1;
  static constexpr int bytes_between =
      4 * static_cast<int>(detail::code_line_bytes); ///< from one step's codes to the next step's
  static constexpr std::uint32_t ones = Bf16 ? 0x3f803f80U : 0x3c003c00U;

  Ptx ptx;
  const unsigned char* codes; ///< source of the lane's next copy
  unsigned base;              ///< address of the lane's bytes in slot 0
  params_type params;
  /// For each of the thread's outputs, a pair of 16-bit values that removes the zero point from a
  /// pair of codes: 1024 + zero point in f16, which is subtracted; -(128 + zero point) in bf16,
  /// which is added.
  std::uint32_t zeros[4];

  TWILL_KERNEL_MEMBER gemm_w4_weights(Ptx p, const detail::packed_view& w, int pair, int lane,
                                      int warp_base, int segment)
      : ptx(p), base(static_cast<unsigned>(warp_base + lane * 16)),
        params(p, w, panel_of(w, pair, lane), lane / 4 % 4, segment) {
    codes = w.codes + panel_of(w, pair, lane) * w.codes_stride +
            lane % 4 * detail::code_line_bytes + lane / 4 % 4 * 16 +
            std::int64_t{segment} * SegmentSteps * bytes_between;
    set_zeros();
  }

  /// The output that is row lane / 4 (j = 0) or lane / 4 + 8 (j = 1) of tile i.
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

  /// The operands of mma for columns 0 to 3 of each octet (k = 0), or 4 to 7 (k = 1).
  TWILL_KERNEL_MEMBER fragments fragments_of(const words4& words, int k) const {
    fragments to;
    TWILL_UNROLL
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t word = words.word[r];
      std::uint32_t* const a = &to.a[r / 2][r % 2];
      a[0] =
          params.without_zero(low_nibbles(ptx.permute(word, 0, 0x4140) >> (4 * k)), zeros[r], ones);
      a[2] =
          params.without_zero(low_nibbles(ptx.permute(word, 0, 0x4342) >> (4 * k)), zeros[r], ones);
    }
    return to;
  }

  TWILL_KERNEL_MEMBER void multiply(const fragments& f, const words4& x, int k, part& to,
                                    float (&)[2][4]) const {
    params.multiply(f.a, {x.word[2 * k], x.word[2 * k + 1]}, ones, to);
  }

  /// Converts the zero points of the segment that begins, and loads those of the next segment.
  TWILL_KERNEL_MEMBER void begin_segment(bool more) {
    if (params.zeros_differ()) set_zeros();
    params.advance(more);
  }

  TWILL_KERNEL_MEMBER void end_segment(const part& from, float (&sum)[2][4]) const {
    params.add(0, from, sum);
  }

  /// Loads the scales of the next segment, if there is one.
  TWILL_KERNEL_MEMBER void load_scales() { params.load_scales(); }

private:
  TWILL_KERNEL_MEMBER std::uint32_t low_nibbles(std::uint32_t word) const {
    return ptx.template lop3<0xea>(word, 0x000f000fU, Bf16 ? 0x43004300U : 0x64006400U);
  }

  /// Sets `zeros` from the zero points of the lane's four outputs.
  TWILL_KERNEL_MEMBER void set_zeros() {
    TWILL_UNROLL
    for (int r = 0; r < 4; ++r)
      zeros[r] = (Bf16 ? 0xc300c300U : 0x64006400U) | params.zero_pair(0, r);
  }
};

/// Calls f.template operator()<Weights>(), where Weights is the instance of this file's struct for
/// a matrix that gemm_w4_takes() accepts. Where the scales are f16 without stored offsets, 128 or
/// 64 columns are scaled at once (a segment) if one of these divides a group; in all other cases 32
/// columns.
template <class Ptx, bool Bf16, class F>
void with_gemm_w4_weights(const detail::packed_view& w, const F& f) {
  switch (params_form_of(w)) {
  case params_form::f32:
    return f.template operator()<gemm_w4_weights<Ptx, Bf16, 1, params_form::f32>>();
  case params_form::offsets_f16:
    return f.template operator()<gemm_w4_weights<Ptx, Bf16, 1, params_form::offsets_f16>>();
  case params_form::offsets_f32:
    return f.template operator()<gemm_w4_weights<Ptx, Bf16, 1, params_form::offsets_f32>>();
  case params_form::f16:
    break;
  }
  if (w.group % 128 == 0)
    f.template operator()<gemm_w4_weights<Ptx, Bf16, 4, params_form::f16>>();
  else if (w.group % 64 == 0)
    f.template operator()<gemm_w4_weights<Ptx, Bf16, 2, params_form::f16>>();
  else
    f.template operator()<gemm_w4_weights<Ptx, Bf16, 1, params_form::f16>>();
}

} // namespace twill::gpu::cuda
