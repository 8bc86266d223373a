// The micro-kernel of int8 compute: multiplies a group of rows by up to int8_gemm_columns columns
// of two row panels (a stretch, int8_pack.hpp). Codes are already unpacked, and each load of four
// activations serves both panels, so that nearly all vector instructions are products. Each output
// is summed in the same order as in int8_gemv.hpp and has the same bits.
//
// The functions below are parts of microkernel() and are inlined into it, so that their arrays stay
// in registers.
#pragma once

#include "gpu/linear/host/int8_pack.hpp"

namespace twill::gpu::host {
namespace {

/// The codes, or the residual codes, of some rows' activations in one segment, with their params.
struct activation_rows {
  const std::int8_t* values;
  std::int64_t stride;
  const segment_params* params;
  std::int64_t params_stride;

  float scale(int r) const { return params[r * params_stride].scale; }
  std::uint32_t offset(int r) const { return params[r * params_stride].offset; }
};

/// Adds the products of a segment, whose activations are at `values`, to `exact`.
template <class S, int Segment, int R>
[[gnu::always_inline]] inline void
multiply_segment(const unsigned char* const (&codes)[microkernel_panels], const std::int8_t* values,
                 std::int64_t stride, typename S::i32 (&exact)[R][microkernel_panels]) {
  for (int q = 0; q < Segment / 4; ++q) {
    typename S::codes c[microkernel_panels];
    for (int b = 0; b < microkernel_panels; ++b)
      c[b] = S::load_codes(codes[b] + q * 64);
    for (int r = 0; r < R; ++r) {
      const typename S::i32 four = S::quad(values + r * stride + 4 * q);
      for (int b = 0; b < microkernel_panels; ++b)
        exact[r][b] = S::dot_quad(exact[r][b], c[b], four);
    }
  }
}

/// Computes a segment's integer sums, which start at the value that the conversion `How` needs.
template <class S, int Segment, conversion How, int R>
[[gnu::always_inline]] inline void
exact_sums(const unsigned char* const (&codes)[microkernel_panels], const activation_rows& x,
           typename S::i32 (&exact)[R][microkernel_panels]) {
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < microkernel_panels; ++b)
      exact[r][b] = S::set1_i32(How >= conversion::factored ? static_cast<std::int32_t>(x.offset(r))
                                : How == conversion::fused  ? float_bias_bits
                                                            : 0);
  multiply_segment<S, Segment, R>(codes, x.values, x.stride, exact);
}

/// Multiplies the integer sums over a segment (columns whose products are summed before scales
/// apply) by their scales and adds them, and the offsets, to the float sums.
///
/// In the conversion `fused` the integers start at the bits of float_bias, so that a sum's bits are
/// those of the float float_bias + sum. A fused multiply-add computes scale * (float_bias + sum) -
/// scale * float_bias with one rounding, which is scale * sum rounded once: the same as converting
/// the sum and multiplying. (Both operands are exact for scales of 11 bits and sums below 2^22.)
template <class S, conversion How, int R>
[[gnu::always_inline]] inline void
add_segment(const pack_params (&params)[microkernel_panels], const activation_rows& x,
            const typename S::i32 (&exact)[R][microkernel_panels],
            typename S::f32 (&sum)[R][microkernel_panels]) {
  for (int b = 0; b < microkernel_panels; ++b) {
    const pack_params& of = params[b];
    if constexpr (How == conversion::int16) {
      const typename S::i32 words = S::load_words(of.words);
      for (int r = 0; r < R; ++r)
        sum[r][b] =
            S::fma(S::to_f32(S::dot_words(exact[r][b], words)), S::set1(x.scale(r)), sum[r][b]);
      continue;
    }
    const typename S::f32 scale = S::load(of.scale), minus_bias = S::load(of.minus_bias);
    typename S::f32 offset;
    if constexpr (How != conversion::factored) offset = S::load(of.offset);
    for (int r = 0; r < R; ++r) {
      typename S::f32 scaled;
      if constexpr (How == conversion::fused)
        scaled = S::fma(scale, S::as_f32(exact[r][b]), minus_bias);
      else
        scaled = S::mul(scale, S::to_f32(exact[r][b]));
      sum[r][b] = S::fma(scaled, S::set1(x.scale(r)), sum[r][b]);
      if constexpr (How != conversion::factored)
        sum[r][b] = S::fma(offset, S::set1(detail::bits_to_f32(x.offset(r))), sum[r][b]);
    }
  }
}

/// Adds a segment's integer sums to the group's float sums, for ByGroup.
template <class S, int R>
[[gnu::always_inline]] inline void
add_to_group(const activation_rows& x, const typename S::i32 (&exact)[R][microkernel_panels],
             typename S::f32 (&sum)[R][microkernel_panels]) {
  for (int r = 0; r < R; ++r) {
    const typename S::f32 scale = S::set1(x.scale(r));
    for (int b = 0; b < microkernel_panels; ++b)
      sum[r][b] = S::fma(S::to_f32(exact[r][b]), scale, sum[r][b]);
  }
}

/// Called only where scales are applied once per quantisation group of the weights (ByGroup), at
/// the end of a group: multiplies the group's sums by its scale, adds its offset, adds the result
/// to the rows' `totals`, and clears `sum`. `residual` holds the codes of the rows' residuals,
/// which are the errors of rounding activations to int8.
template <class S, conversion How, bool Residual, int R>
[[gnu::always_inline]] inline void
close_group(const pack_params (&params)[microkernel_panels], const activation_rows& x,
            const activation_rows& residual, float (*totals)[microkernel_panels][16],
            typename S::f32 (&sum)[R][microkernel_panels]) {
  for (int b = 0; b < microkernel_panels; ++b) {
    const typename S::f32 scale = S::load(params[b].scale);
    typename S::f32 offset;
    if constexpr (How != conversion::factored) offset = S::load(params[b].offset);
    for (int r = 0; r < R; ++r) {
      typename S::f32 total = S::fma(scale, sum[r][b], S::load(totals[r][b]));
      if constexpr (How != conversion::factored)
        total = S::fma(offset, S::set1(detail::bits_to_f32(x.offset(r))), total);
      if constexpr (How != conversion::factored && Residual)
        total = S::fma(offset, S::set1(detail::bits_to_f32(residual.offset(r))), total);
      S::store(totals[r][b], total);
      sum[r][b] = S::zero();
    }
  }
}

/// Writes the outputs, once all columns are summed.
template <class S, int R>
[[gnu::always_inline]] inline void write_sums(const tile& t, std::int64_t row,
                                              const pack_stretch& at, int8_pack& pack,
                                              const typename S::f32 (&sum)[R][microkernel_panels]) {
  if (t.gate_panels > 0) {
    float* out = out_of(t, at.panel, row);
    for (int r = 0; r < R; ++r, out += t.out_stride)
      S::store(out, S::silu_mul(sum[r][0], sum[r][1]));
    return;
  }
  // Two whole panels without a bias are stored directly from registers, without finish().
  const bool whole = (at.panel + at.panels) * detail::lanes <= t.weights->rows;
  if (at.panels == microkernel_panels && whole && t.bias == nullptr) {
    float* out = out_of(t, at.panel, row);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r, out += t.out_stride)
#pragma GCC unroll 2
      for (int b = 0; b < microkernel_panels; ++b) {
        float* to = out + b * detail::lanes;
        S::store(to, t.accumulate ? S::add(S::load(to), sum[r][b]) : sum[r][b]);
      }
    return;
  }
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < microkernel_panels; ++b)
      S::store(pack.sums[row + r][b], sum[r][b]);
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < at.panels; ++b)
      finish<S>(t, at.panel + b, out_of(t, at.panel + b, row + r), S::load(pack.sums[row + r][b]));
}

/// Multiplies R rows, the first of which is `row`, by a stretch (some columns of two row panels,
/// int8_pack.hpp). In each segment (packed_view.hpp) the function prefetches the next Segment * 8
/// bytes at `ahead`, because many prefetches at once would delay the loads. With ByGroup (see
/// goes_by_group()) a stretch consists of whole quantisation groups, and the sums over groups are
/// kept in `pack`.
template <class S, int Segment, conversion How, bool ByGroup, bool Residual, int R>
[[gnu::noinline]] void microkernel(const tile& t, const quantised_rows& x, std::int64_t row,
                                   const pack_stretch& at, const unsigned char* ahead,
                                   int8_pack& pack) {
  constexpr int B = microkernel_panels;
  activation_rows rows{x.values + row * x.values_stride + at.first * Segment, x.values_stride,
                       x.params + row * x.segments + at.first, x.segments};
  const std::uint8_t* residual_flags =
      Residual ? x.has_residual + row * x.segments + at.first : nullptr;
  const unsigned char* codes[B];
  for (int b = 0; b < B; ++b)
    codes[b] = at.codes[b];
  const auto* params = pack.params;
  typename S::f32 sum[R][B];
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < B; ++b) {
      sum[r][b] = at.begins || ByGroup ? S::zero() : S::load(pack.sums[row + r][b]);
      if (ByGroup && at.begins) S::store(pack.sums[row + r][b], S::zero());
    }
  const std::int64_t per_group = t.weights->group / Segment;
  std::int64_t left_of_group = per_group;

  for (std::int64_t left = at.count; left > 0; --left) {
    for (int i = 0; i < Segment / 8; ++i, ahead += 64)
      ask_for_later(ahead);
    const auto add = [&](const activation_rows& of) __attribute__((always_inline)) {
      typename S::i32 exact[R][B];
      exact_sums<S, Segment, How, R>(codes, of, exact);
      if constexpr (ByGroup)
        add_to_group<S, R>(of, exact, sum);
      else
        add_segment<S, How, R>(*params, of, exact, sum);
    };
    add(rows);
    const activation_rows residual{rows.values + x.residual_values, rows.stride,
                                   rows.params + x.residual_params, rows.params_stride};
    if constexpr (Residual)
      if (any_residual<R>(residual_flags++, x.segments)) add(residual);
    if (ByGroup && --left_of_group == 0) {
      left_of_group = per_group;
      close_group<S, How, Residual, R>(*params, rows, residual, &pack.sums[row], sum);
    }
    for (int b = 0; b < B; ++b)
      codes[b] += Segment * 16;
    ++params;
    rows.values += Segment;
    ++rows.params;
  }
  if (!at.ends) {
    for (int r = 0; r < R && !ByGroup; ++r)
      for (int b = 0; b < B; ++b)
        S::store(pack.sums[row + r][b], sum[r][b]);
    return;
  }
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < B; ++b) {
      if constexpr (ByGroup) sum[r][b] = S::load(pack.sums[row + r][b]);
      if constexpr (How == conversion::int16)
        sum[r][b] = S::mul(sum[r][b], S::load(at.row_scales[b]));
    }
  write_sums<S, R>(t, row, at, pack, sum);
}

} // namespace
} // namespace twill::gpu::host
