// Groups of rows times a panel (int8_panel.hpp). Codes come ready to multiply and every four
// activations are loaded once for both blocks, so that nearly all vector instructions are products.
// The per-output order of sums is that of int8_rows.hpp, bit for bit.
//
// The functions below are parts of panel_group(), inlined into it: their arrays are registers.
#pragma once

#include "gpu/linear/host/int8_pack.hpp"

namespace twill::gpu::host {
namespace {

/// One digit of some rows' activations of a segment, and its terms.
struct panel_values {
  const std::int8_t* values;
  std::int64_t stride;
  const segment_terms* terms;
  std::int64_t terms_stride;

  float scale(int r) const { return terms[r * terms_stride].scale; }
  std::uint32_t term(int r) const { return terms[r * terms_stride].term; }
};

/// exact += the products of a segment, whose activations are at `values`.
template <class S, int Segment, int R>
[[gnu::always_inline]] inline void
multiply_segment(const unsigned char* const (&codes)[panel_blocks], const std::int8_t* values,
                 std::int64_t stride, typename S::i32 (&exact)[R][panel_blocks]) {
  for (int q = 0; q < Segment / 4; ++q) {
    typename S::codes c[panel_blocks];
    for (int b = 0; b < panel_blocks; ++b)
      c[b] = S::load_codes(codes[b] + q * 64);
    for (int r = 0; r < R; ++r) {
      const typename S::i32 four = S::quad(values + r * stride + 4 * q);
      for (int b = 0; b < panel_blocks; ++b)
        exact[r][b] = S::dot_quad(exact[r][b], c[b], four);
    }
  }
}

/// A segment's integers.
template <class S, int Segment, conversion How, int R>
[[gnu::always_inline]] inline void exact_sums(const unsigned char* const (&codes)[panel_blocks],
                                              const panel_values& x,
                                              typename S::i32 (&exact)[R][panel_blocks]) {
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < panel_blocks; ++b)
      exact[r][b] = S::set1_i32(How >= conversion::factored ? static_cast<std::int32_t>(x.term(r))
                                : How == conversion::fused  ? float_bias_bits
                                                            : 0);
  multiply_segment<S, Segment, R>(codes, x.values, x.stride, exact);
}

/// Adds a segment's integers to the sums, with their scales and offsets.
///
/// The fused conversion: integers start at the bits of float_bias, so that their bits are those of
/// float_bias + sum; scale * that - scale * float_bias, in one rounding, is scale * sum rounded
/// once (both terms are exact for scales of 11 bits and sums below 2^22), which is what converting
/// and multiplying gives.
template <class S, conversion How, int R>
[[gnu::always_inline]] inline void add_segment(const panel_terms (&terms)[panel_blocks],
                                               const panel_values& x,
                                               const typename S::i32 (&exact)[R][panel_blocks],
                                               typename S::f32 (&sum)[R][panel_blocks]) {
  for (int b = 0; b < panel_blocks; ++b) {
    const panel_terms& of = terms[b];
    if constexpr (How == conversion::integer) {
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
        sum[r][b] = S::fma(offset, S::set1(detail::bits_to_f32(x.term(r))), sum[r][b]);
    }
  }
}

/// By group: adds a segment's integers to the group's sums.
template <class S, int R>
[[gnu::always_inline]] inline void add_to_group(const panel_values& x,
                                                const typename S::i32 (&exact)[R][panel_blocks],
                                                typename S::f32 (&sum)[R][panel_blocks]) {
  for (int r = 0; r < R; ++r) {
    const typename S::f32 scale = S::set1(x.scale(r));
    for (int b = 0; b < panel_blocks; ++b)
      sum[r][b] = S::fma(S::to_f32(exact[r][b]), scale, sum[r][b]);
  }
}

/// Adds the group's scale and offset times its sums to the rows' `totals`, and clears `sum`. `low`:
/// of a second digit.
template <class S, conversion How, int Digits, int R>
[[gnu::always_inline]] inline void close_group(const panel_terms (&terms)[panel_blocks],
                                               const panel_values& x, const panel_values& low,
                                               float (*totals)[panel_blocks][16],
                                               typename S::f32 (&sum)[R][panel_blocks]) {
  for (int b = 0; b < panel_blocks; ++b) {
    const typename S::f32 scale = S::load(terms[b].scale);
    typename S::f32 offset;
    if constexpr (How != conversion::factored) offset = S::load(terms[b].offset);
    for (int r = 0; r < R; ++r) {
      typename S::f32 total = S::fma(scale, sum[r][b], S::load(totals[r][b]));
      if constexpr (How != conversion::factored)
        total = S::fma(offset, S::set1(detail::bits_to_f32(x.term(r))), total);
      if constexpr (How != conversion::factored && Digits == 2)
        total = S::fma(offset, S::set1(detail::bits_to_f32(low.term(r))), total);
      S::store(totals[r][b], total);
      sum[r][b] = S::zero();
    }
  }
}

/// Writes the sums of all columns out.
template <class S, int R>
[[gnu::always_inline]] inline void write_sums(const tile& t, std::int64_t row,
                                              const panel_stretch& at, int8_panel& panel,
                                              const typename S::f32 (&sum)[R][panel_blocks]) {
  if (t.gate_blocks > 0) {
    float* out = out_of(t, at.block, row);
    for (int r = 0; r < R; ++r, out += t.out_stride)
      S::store(out, S::silu_mul(sum[r][0], sum[r][1]));
    return;
  }
  // The plain case in registers: finish(), sum by sum, took a tenth of 512 x 576 -> 3072.
  const bool whole = (at.block + at.blocks) * detail::lanes <= t.weights->rows;
  if (at.blocks == panel_blocks && whole && t.bias == nullptr) {
    float* out = out_of(t, at.block, row);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r, out += t.out_stride)
#pragma GCC unroll 2
      for (int b = 0; b < panel_blocks; ++b) {
        float* to = out + b * detail::lanes;
        S::store(to, t.accumulate ? S::add(S::load(to), sum[r][b]) : sum[r][b]);
      }
    return;
  }
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < panel_blocks; ++b)
      S::store(panel.sums[row + r][b], sum[r][b]);
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < at.blocks; ++b)
      finish<S>(t, at.block + b, out_of(t, at.block + b, row + r), S::load(panel.sums[row + r][b]));
}

/// R rows from `row` on times a stretch. Asks for Segment * 8 bytes from `ahead` on in each
/// segment: in a burst they would hold up the loads. ByGroup: as goes_by_group() says; a stretch
/// has whole groups then, and the sums over groups stay in the panel.
template <class S, int Segment, conversion How, bool ByGroup, int Digits, int R>
[[gnu::noinline]] void panel_group(const tile& t, const quantised_rows& x, std::int64_t row,
                                   const panel_stretch& at, const unsigned char* ahead,
                                   int8_panel& panel) {
  constexpr int B = panel_blocks;
  panel_values rows{x.values + row * x.values_stride + at.first * Segment, x.values_stride,
                    x.terms + row * x.segments + at.first, x.segments};
  const std::uint8_t* fine = Digits == 2 ? x.fine + row * x.segments + at.first : nullptr;
  const unsigned char* codes[B];
  for (int b = 0; b < B; ++b)
    codes[b] = at.codes[b];
  const auto* terms = panel.terms;
  typename S::f32 sum[R][B];
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < B; ++b) {
      sum[r][b] = at.begins || ByGroup ? S::zero() : S::load(panel.sums[row + r][b]);
      if (ByGroup && at.begins) S::store(panel.sums[row + r][b], S::zero());
    }
  const std::int64_t per_group = t.weights->group / Segment;
  std::int64_t left_of_group = per_group;

  for (std::int64_t left = at.count; left > 0; --left) {
    for (int i = 0; i < Segment / 8; ++i, ahead += 64)
      ask_for_later(ahead);
    const auto add = [&](const panel_values& digits) __attribute__((always_inline)) {
      typename S::i32 exact[R][B];
      exact_sums<S, Segment, How, R>(codes, digits, exact);
      if constexpr (ByGroup)
        add_to_group<S, R>(digits, exact, sum);
      else
        add_segment<S, How, R>(*terms, digits, exact, sum);
    };
    add(rows);
    const panel_values low{rows.values + x.low_digits, rows.stride, rows.terms + x.low_terms,
                           rows.terms_stride};
    if constexpr (Digits == 2)
      if (any_fine<R>(fine++, x.segments)) add(low);
    if (ByGroup && --left_of_group == 0) {
      left_of_group = per_group;
      close_group<S, How, Digits, R>(*terms, rows, low, &panel.sums[row], sum);
    }
    for (int b = 0; b < B; ++b)
      codes[b] += Segment * 16;
    ++terms;
    rows.values += Segment;
    ++rows.terms;
  }
  if (!at.ends) {
    for (int r = 0; r < R && !ByGroup; ++r)
      for (int b = 0; b < B; ++b)
        S::store(panel.sums[row + r][b], sum[r][b]);
    return;
  }
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < B; ++b) {
      if constexpr (ByGroup) sum[r][b] = S::load(panel.sums[row + r][b]);
      if constexpr (How == conversion::integer) sum[r][b] = S::mul(sum[r][b], S::load(at.units[b]));
    }
  write_sums<S, R>(t, row, at, panel, sum);
}

} // namespace
} // namespace twill::gpu::host
