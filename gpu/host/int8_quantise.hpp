// Activations to int8, per 32 columns, in one digit or two, over a SIMD policy.
#pragma once

#include "gpu/host/tile_common.hpp"

namespace twill::gpu::host {
namespace {

/// Groups quantised side by side: each one's largest magnitude and sums are horizontal, and four
/// cost little more than one.
constexpr int groups_at_once = 4;
constexpr int at_once = groups_at_once * detail::activation_group;

/// Four groups' numbers, in one register.
typedef float four_floats __attribute__((vector_size(16)));
typedef std::int32_t four_ints __attribute__((vector_size(16)));

/// What is known of at_once codes of a row.
struct quantised_run {
  alignas(16) float scales[groups_at_once];
  alignas(16) std::int32_t sums[groups_at_once]; ///< of the codes, in units of the scale
  bool fine[groups_at_once];                     ///< the low digits count
};

/// Each group to codes by its largest magnitude. `x`: at_once values, zeros past the row's end.
/// `high`, which is int8's only digit, and `low` take at_once codes each, 16-byte aligned.
template <class S, int Digits>
inline quantised_run quantise_run(const float* x, std::int8_t* high, std::int8_t* low) {
  constexpr float steps = Digits == 1 ? 127.0F : 127.0F * detail::high_digit;
  typename S::f32 top[groups_at_once];
  for (int g = 0; g < groups_at_once; ++g)
    top[g] = S::max(S::abs(S::load(x + 32 * g)), S::abs(S::load(x + 32 * g + 16)));
  alignas(16) float inverse[groups_at_once];
  S::largest_4(top, inverse);
  four_floats largest;
  __builtin_memcpy(&largest, inverse, sizeof largest);
  // Below this the reciprocal overflows; such a group is zero for every purpose.
  const four_ints counts = largest > 1e-30F;
  const four_floats inverses = counts ? steps / largest : four_floats{};
  const four_floats scales = counts ? largest / steps : four_floats{};
  __builtin_memcpy(inverse, &inverses, sizeof inverses);
  quantised_run out;
  __builtin_memcpy(out.scales, &scales, sizeof scales);
  for (int i = 0; i < at_once; i += 16) {
    const auto v = S::mul(S::load(x + i), S::set1(inverse[i / 32]));
    if constexpr (Digits == 1)
      S::store_i8(high + i, v);
    else
      S::store_digits(high + i, low + i, v);
  }
  S::sum_4(high, out.sums);
  if constexpr (Digits == 2) {
    alignas(16) std::int32_t magnitudes[groups_at_once], rests[groups_at_once];
    S::sum_magnitudes_4(high, magnitudes);
    S::sum_4(low, rests);
    for (int g = 0; g < groups_at_once; ++g) {
      out.fine[g] = magnitudes[g] < detail::dominated;
      out.sums[g] = out.sums[g] * detail::high_digit + (out.fine[g] ? rests[g] : 0);
      if (!out.fine[g]) __builtin_memset(low + 32 * g, 0, 32);
    }
  }
  return out;
}

/// The last n < at_once columns of a row.
template <class S, int Digits>
inline quantised_run quantise_rest(const float* x, int n, std::int8_t* high, std::int8_t* low) {
  const auto size = static_cast<std::size_t>(n);
  alignas(64) float padded[at_once] = {};
  alignas(64) std::int8_t codes[2][at_once];
  __builtin_memcpy(padded, x, size * sizeof(float));
  const quantised_run run = quantise_run<S, Digits>(padded, codes[0], codes[1]);
  __builtin_memcpy(high, codes[0], size);
  if constexpr (Digits == 2) __builtin_memcpy(low, codes[1], size);
  return run;
}

/// The sum of one segment's codes, where a segment is less than a group.
template <int Digits>
inline std::int32_t segment_sum(const std::int8_t* high, const std::int8_t* low, int n) {
  std::int32_t sum = 0;
  for (int i = 0; i < n; ++i)
    sum += Digits == 1 ? high[i] : high[i] * detail::high_digit + low[i];
  return sum;
}

template <class S, int Digits>
inline void quantise_row(const packed_view& w, const float* x, const quantised_rows& out,
                         std::int64_t row) {
  std::int8_t* high = out.values + row * out.values_stride;
  std::int8_t* low = high + out.low_digits;
  segment_terms* terms = out.terms + row * out.segments;
  std::uint8_t* fine = out.fine + row * out.segments;
  const code_form form = w.kind == weight_kind::grouped_u8 ? code_form::u8 : code_form::u4;
  const bool by_group =
      may_go_by_group<S>(form, 32, Digits) && goes_by_group(w) && w.offsets_stored;
  const auto offset_term = [&w](float scale, std::int32_t sum) {
    if (w.integer_terms) return integer_begin(sum);
    return w.offsets_stored ? detail::f32_to_bits(scale * static_cast<float>(sum))
                            : static_cast<std::uint32_t>(w.offset_factor * sum);
  };
  float of_group = 0;
  for (std::int64_t k = 0; k < w.cols; k += at_once) {
    const int n = w.cols - k < at_once ? static_cast<int>(w.cols - k) : at_once;
    const quantised_run run = n == at_once ? quantise_run<S, Digits>(x + k, high + k, low + k)
                                           : quantise_rest<S, Digits>(x + k, n, high + k, low + k);
    if (n == at_once && w.segment == 32 && !by_group) {
      for (int g = 0; g < groups_at_once; ++g) {
        *terms++ = {run.scales[g], offset_term(run.scales[g], run.sums[g])};
        if constexpr (Digits == 2) *fine++ = run.fine[g] ? 1 : 0;
      }
      continue;
    }
    for (int at = 0; at < n; at += w.segment) {
      const int g = at / 32;
      const std::int32_t sum = w.segment == 32
                                   ? run.sums[g]
                                   : segment_sum<Digits>(high + k + at, low + k + at, w.segment);
      *terms = {run.scales[g], offset_term(run.scales[g], sum)};
      if (by_group) {
        if ((k + at) % w.group == 0) of_group = 0;
        of_group += detail::bits_to_f32(terms->term);
        terms->term = detail::f32_to_bits(of_group);
      }
      ++terms;
      if constexpr (Digits == 2) *fine++ = run.fine[g] ? 1 : 0;
    }
  }
}

template <class S>
void quantise(const packed_view& w, const float* x, const quantised_rows& out, std::int64_t row) {
  out.low_digits != 0 ? quantise_row<S, 2>(w, x, out, row) : quantise_row<S, 1>(w, x, out, row);
}

} // namespace
} // namespace twill::gpu::host
