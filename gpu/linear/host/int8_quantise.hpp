// Activations to int8, per 32 columns, in one digit or two, over a SIMD policy.
#pragma once

#include "gpu/linear/host/tile_common.hpp"

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
  alignas(16) std::int32_t high_sums[groups_at_once]; ///< of int8's only digit, or the high one
  alignas(16) std::int32_t low_sums[groups_at_once];
  bool fine[groups_at_once]; ///< the low digits count
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
  S::sum_4(high, out.high_sums);
  if constexpr (Digits == 2) {
    alignas(16) std::int32_t magnitudes[groups_at_once];
    S::sum_magnitudes_4(high, magnitudes);
    S::sum_4(low, out.low_sums);
    for (int g = 0; g < groups_at_once; ++g) {
      out.fine[g] = magnitudes[g] < detail::dominated;
      if (out.fine[g]) continue;
      out.low_sums[g] = 0;
      __builtin_memset(low + 32 * g, 0, 32);
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
inline std::int32_t segment_sum(const std::int8_t* codes, int n) {
  std::int32_t sum = 0;
  for (int i = 0; i < n; ++i)
    sum += codes[i];
  return sum;
}

/// Writes the terms of one digit of a row's segments, one after the other.
class term_writer {
public:
  /// `by_group`: offsets' parts are summed from a group's first segment on.
  term_writer(const packed_view& w, segment_terms* to, bool by_group)
      : w_(w), to_(to), by_group_(by_group && w.offsets_stored) {}

  /// Of the segment at `column`, whose codes' sum is `sum`.
  void put(std::int64_t column, float scale, std::int32_t sum) {
    *to_++ = {scale, by_group_ ? summed(column, scale, sum) : alone(scale, sum)};
  }

private:
  std::uint32_t alone(float scale, std::int32_t sum) const {
    if (w_.integer_terms) return integer_begin(sum);
    return w_.offsets_stored ? detail::f32_to_bits(scale * static_cast<float>(sum))
                             : static_cast<std::uint32_t>(w_.offset_factor * sum);
  }
  std::uint32_t summed(std::int64_t column, float scale, std::int32_t sum) {
    if (column % w_.group == 0) of_group_ = 0;
    return detail::f32_to_bits(of_group_ += scale * static_cast<float>(sum));
  }

  const packed_view& w_;
  segment_terms* to_;
  bool by_group_;
  float of_group_ = 0;
};

template <class S, int Digits>
inline void quantise_row(const packed_view& w, const float* x, const quantised_rows& out,
                         std::int64_t row) {
  std::int8_t* high = out.values + row * out.values_stride;
  std::int8_t* low = high + out.low_digits;
  std::uint8_t* fine = out.fine + row * out.segments;
  const bool by_group = may_go_by_group<S>(32) && goes_by_group(w);
  segment_terms* terms = out.terms + row * out.segments;
  term_writer of_high(w, terms, by_group), of_low(w, terms + out.low_terms, by_group);
  for (std::int64_t k = 0; k < w.cols; k += at_once) {
    const int n = w.cols - k < at_once ? static_cast<int>(w.cols - k) : at_once;
    const quantised_run run = n == at_once ? quantise_run<S, Digits>(x + k, high + k, low + k)
                                           : quantise_rest<S, Digits>(x + k, n, high + k, low + k);
    const auto put = [&](int at, int g, std::int32_t high_sum, std::int32_t low_sum) {
      const float scale = run.scales[g];
      of_high.put(k + at, Digits == 2 ? scale * detail::high_digit : scale, high_sum);
      if constexpr (Digits == 2) {
        of_low.put(k + at, scale, low_sum);
        *fine++ = run.fine[g] ? 1 : 0;
      }
    };
    if (w.segment == 32 && n == at_once) {
      for (int g = 0; g < groups_at_once; ++g)
        put(32 * g, g, run.high_sums[g], run.low_sums[g]);
      continue;
    }
    for (int at = 0; at < n; at += w.segment) {
      const int g = at / 32;
      if (w.segment == 32)
        put(at, g, run.high_sums[g], run.low_sums[g]);
      else
        put(at, g, segment_sum(high + k + at, w.segment),
            Digits == 2 ? segment_sum(low + k + at, w.segment) : 0);
    }
  }
}

template <class S>
void quantise(const packed_view& w, const float* x, const quantised_rows& out, std::int64_t row) {
  out.low_digits != 0 ? quantise_row<S, 2>(w, x, out, row) : quantise_row<S, 1>(w, x, out, row);
}

} // namespace
} // namespace twill::gpu::host
