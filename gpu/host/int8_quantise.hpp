// Activations to int8, per 32 columns, in one digit or two, over a SIMD policy.
#pragma once

#include "gpu/host/tile_common.hpp"

namespace twill::gpu::host {
namespace {

/// Groups quantised side by side: each one's largest magnitude and sums are horizontal, and four
/// cost little more than one.
constexpr int groups_at_once = 4;
constexpr int at_once = groups_at_once * detail::activation_group;

/// At most `at_once` activations of a row in codes, before they are written out.
struct quantised_run {
  alignas(64) std::int8_t high[at_once]; // or int8's only digit
  alignas(64) std::int8_t low[at_once];
  alignas(16) float scales[groups_at_once];
  alignas(16) std::int32_t sums[groups_at_once]; ///< of the codes, in units of the scale
  bool fine[groups_at_once];                     ///< the low digits count
};

/// Each group to codes by its largest magnitude. `x`: at_once values, zeros past the row's end.
template <class S, int Digits>
inline void quantise_run(const float* x, quantised_run& out) {
  constexpr float steps = Digits == 1 ? 127.0F : 127.0F * detail::high_digit;
  typename S::f32 top[groups_at_once];
  for (int g = 0; g < groups_at_once; ++g)
    top[g] = S::max(S::abs(S::load(x + 32 * g)), S::abs(S::load(x + 32 * g + 16)));
  alignas(16) float largest[groups_at_once], inverse[groups_at_once];
  S::largest_4(top, largest);
  for (int g = 0; g < groups_at_once; ++g) {
    // Below this the reciprocal overflows; such a group is zero for every purpose.
    const bool counts = largest[g] > 1e-30F;
    inverse[g] = counts ? steps / largest[g] : 0.0F;
    out.scales[g] = counts ? largest[g] / steps : 0.0F;
  }
  for (int i = 0; i < at_once; i += 16) {
    const auto v = S::mul(S::load(x + i), S::set1(inverse[i / 32]));
    if constexpr (Digits == 1)
      S::store_i8(out.high + i, v);
    else
      S::store_digits(out.high + i, out.low + i, v);
  }
  S::sum_4(out.high, out.sums);
  if constexpr (Digits == 2) {
    alignas(16) std::int32_t magnitudes[groups_at_once], rests[groups_at_once];
    S::sum_magnitudes_4(out.high, magnitudes);
    S::sum_4(out.low, rests);
    for (int g = 0; g < groups_at_once; ++g) {
      out.fine[g] = magnitudes[g] < detail::dominated;
      out.sums[g] = out.sums[g] * detail::high_digit + (out.fine[g] ? rests[g] : 0);
      if (!out.fine[g]) __builtin_memset(out.low + 32 * g, 0, 32);
    }
  }
}

/// The sum of one segment's codes, where a segment is less than a group.
template <int Digits>
inline std::int32_t segment_sum(const quantised_run& run, int at, int n) {
  std::int32_t sum = 0;
  for (int i = at; i < at + n; ++i)
    sum += Digits == 1 ? run.high[i] : run.high[i] * detail::high_digit + run.low[i];
  return sum;
}

/// A call where the length is not known costs more than the copy.
inline void copy_run(std::int8_t* to, const std::int8_t* from, int n) {
  n == at_once ? __builtin_memcpy(to, from, at_once)
               : __builtin_memcpy(to, from, static_cast<std::size_t>(n));
}

template <class S, int Digits>
inline void quantise_row(const packed_view& w, const float* x, const quantised_rows& out,
                         std::int64_t row) {
  std::int8_t* q = out.values + row * out.values_stride;
  std::int64_t segment = row * out.segments;
  const code_form form = w.kind == weight_kind::grouped_u8 ? code_form::u8 : code_form::u4;
  const bool by_group =
      may_go_by_group<S>(form, 32, Digits) && goes_by_group(w) && w.offsets_stored;
  float of_group = 0;
  for (std::int64_t k = 0; k < w.cols; k += at_once) {
    const int n = w.cols - k < at_once ? static_cast<int>(w.cols - k) : at_once;
    alignas(64) float padded[at_once];
    const float* from = x + k;
    if (n < at_once) {
      __builtin_memset(padded, 0, sizeof padded);
      __builtin_memcpy(padded, from, static_cast<std::size_t>(n) * sizeof(float));
      from = padded;
    }
    quantised_run run;
    quantise_run<S, Digits>(from, run);
    copy_run(q + k, run.high, n);
    if constexpr (Digits == 2) copy_run(q + out.low_digits + k, run.low, n);
    for (int at = 0; at < n; at += w.segment, ++segment) {
      const int g = at / 32;
      const std::int32_t sum =
          w.segment == 32 ? run.sums[g] : segment_sum<Digits>(run, at, w.segment);
      const float scale = run.scales[g];
      float term = scale * static_cast<float>(sum);
      if (by_group) {
        if ((k + at) % w.group == 0) of_group = 0;
        term = of_group += term;
      }
      out.terms[segment] = {scale, w.offsets_stored
                                       ? detail::f32_to_bits(term)
                                       : static_cast<std::uint32_t>(w.offset_factor * sum)};
      if constexpr (Digits == 2) out.fine[segment] = run.fine[g] ? 1 : 0;
    }
  }
}

template <class S>
void quantise(const packed_view& w, const float* x, const quantised_rows& out, std::int64_t row) {
  out.low_digits != 0 ? quantise_row<S, 2>(w, x, out, row) : quantise_row<S, 1>(w, x, out, row);
}

} // namespace
} // namespace twill::gpu::host
