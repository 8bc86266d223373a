// Quantises activations to int8 per 32 columns, with or without a residual, over a SIMD policy.
#pragma once

#include "gpu/linear/host/tile_common.hpp"

namespace twill::gpu::host {
namespace {

/// The number of groups of 32 columns that are quantised together. A group's largest magnitude and
/// its sums are horizontal SIMD operations, and four of these together cost little more than one.
constexpr int groups_at_once = 4;
constexpr int at_once = groups_at_once * detail::activation_group;

/// One number for each of four groups, in one register.
typedef float four_floats __attribute__((vector_size(16)));
typedef std::int32_t four_ints __attribute__((vector_size(16)));

/// Scales and sums of at_once quantised columns of a row.
struct quantised_run {
  alignas(16) float scales[groups_at_once];
  alignas(16) std::int32_t sums[groups_at_once]; ///< of the codes
  alignas(16) std::int32_t residual_sums[groups_at_once];
  bool has_residual[groups_at_once]; ///< whether the group uses its residual
};

/// Quantises each group by its largest magnitude. `x` has at_once values, with zeros past the row's
/// end; `codes` and `residual` (the codes of the rounding errors) have room for at_once codes each
/// and are 16-byte aligned.
template <class S, bool Residual>
inline quantised_run quantise_run(const float* x, std::int8_t* codes, std::int8_t* residual) {
  constexpr float largest_code = !Residual ? 127.0F : 127.0F * detail::residual_ratio;
  typename S::f32 top[groups_at_once];
  for (int g = 0; g < groups_at_once; ++g)
    top[g] = S::max(S::abs(S::load(x + 32 * g)), S::abs(S::load(x + 32 * g + 16)));
  alignas(16) float inverse[groups_at_once];
  S::largest_4(top, inverse);
  four_floats largest;
  __builtin_memcpy(&largest, inverse, sizeof largest);
  // The reciprocal of a smaller magnitude would overflow; such a group is stored as zeros.
  const four_ints counts = largest > 1e-30F;
  const four_floats inverses = counts ? largest_code / largest : four_floats{};
  const four_floats scales = counts ? largest / largest_code : four_floats{};
  __builtin_memcpy(inverse, &inverses, sizeof inverses);
  quantised_run out;
  __builtin_memcpy(out.scales, &scales, sizeof scales);
  for (int i = 0; i < at_once; i += 16) {
    const auto v = S::mul(S::load(x + i), S::set1(inverse[i / 32]));
    if constexpr (!Residual)
      S::store_i8(codes + i, v);
    else
      S::store_with_residual(codes + i, residual + i, v);
  }
  S::sum_4(codes, out.sums);
  if constexpr (Residual) {
    alignas(16) std::int32_t magnitudes[groups_at_once];
    S::sum_magnitudes_4(codes, magnitudes);
    S::sum_4(residual, out.residual_sums);
    for (int g = 0; g < groups_at_once; ++g) {
      out.has_residual[g] = magnitudes[g] < detail::residual_threshold;
      if (out.has_residual[g]) continue;
      out.residual_sums[g] = 0;
      __builtin_memset(residual + 32 * g, 0, 32);
    }
  }
  return out;
}

/// Quantises the last n < at_once columns of a row.
template <class S, bool Residual>
inline quantised_run quantise_rest(const float* x, int n, std::int8_t* codes,
                                   std::int8_t* residual) {
  const auto size = static_cast<std::size_t>(n);
  alignas(64) float padded[at_once] = {};
  alignas(64) std::int8_t whole[2][at_once];
  __builtin_memcpy(padded, x, size * sizeof(float));
  const quantised_run run = quantise_run<S, Residual>(padded, whole[0], whole[1]);
  __builtin_memcpy(codes, whole[0], size);
  if constexpr (Residual) __builtin_memcpy(residual, whole[1], size);
  return run;
}

/// The sum of a segment's codes, where segments have fewer than 32 columns.
inline std::int32_t segment_sum(const std::int8_t* codes, int n) {
  std::int32_t sum = 0;
  for (int i = 0; i < n; ++i)
    sum += codes[i];
  return sum;
}

/// Writes the params of a row's segments, one after the other, for its codes or its residual.
class param_writer {
public:
  /// With `by_group`, where offsets are applied once per quantisation group, segment_params::offset
  /// of a segment (columns whose products are summed before scales apply) includes the offsets of
  /// the earlier segments of its group.
  param_writer(const packed_view& w, segment_params* to, bool by_group)
      : w_(w), to_(to), by_group_(by_group && w.offsets_stored) {}

  /// Writes the params of the segment at `column`; `sum` is the sum of its codes.
  void put(std::int64_t column, float scale, std::int32_t sum) {
    *to_++ = {scale, by_group_ ? summed(column, scale, sum) : alone(scale, sum)};
  }

private:
  std::uint32_t alone(float scale, std::int32_t sum) const {
    if (w_.int16_quant_params) return int16_start(sum);
    return w_.offsets_stored ? detail::f32_to_bits(scale * static_cast<float>(sum))
                             : static_cast<std::uint32_t>(w_.offset_factor * sum);
  }
  std::uint32_t summed(std::int64_t column, float scale, std::int32_t sum) {
    if (column % w_.group == 0) of_group_ = 0;
    return detail::f32_to_bits(of_group_ += scale * static_cast<float>(sum));
  }

  const packed_view& w_;
  segment_params* to_;
  bool by_group_;
  float of_group_ = 0;
};

template <class S, bool Residual>
inline void quantise_row(const packed_view& w, const float* x, const quantised_rows& out,
                         std::int64_t row) {
  std::int8_t* codes = out.values + row * out.values_stride;
  std::int8_t* residual = codes + out.residual_values;
  std::uint8_t* flags = out.has_residual + row * out.segments;
  const bool by_group = may_go_by_group<S>(32) && goes_by_group(w);
  segment_params* params = out.params + row * out.segments;
  param_writer of_codes(w, params, by_group),
      of_residual(w, params + out.residual_params, by_group);
  for (std::int64_t k = 0; k < w.cols; k += at_once) {
    const int n = w.cols - k < at_once ? static_cast<int>(w.cols - k) : at_once;
    const quantised_run run = n == at_once
                                  ? quantise_run<S, Residual>(x + k, codes + k, residual + k)
                                  : quantise_rest<S, Residual>(x + k, n, codes + k, residual + k);
    const auto put = [&](int at, int g, std::int32_t sum, std::int32_t residual_sum) {
      const float scale = run.scales[g];
      of_codes.put(k + at, Residual ? scale * detail::residual_ratio : scale, sum);
      if constexpr (Residual) {
        of_residual.put(k + at, scale, residual_sum);
        *flags++ = run.has_residual[g] ? 1 : 0;
      }
    };
    if (w.segment == 32 && n == at_once) {
      for (int g = 0; g < groups_at_once; ++g)
        put(32 * g, g, run.sums[g], run.residual_sums[g]);
      continue;
    }
    for (int at = 0; at < n; at += w.segment) {
      const int g = at / 32;
      if (w.segment == 32)
        put(at, g, run.sums[g], run.residual_sums[g]);
      else
        put(at, g, segment_sum(codes + k + at, w.segment),
            Residual ? segment_sum(residual + k + at, w.segment) : 0);
    }
  }
}

template <class S>
void quantise(const packed_view& w, const float* x, const quantised_rows& out, std::int64_t row) {
  out.residual_values != 0 ? quantise_row<S, true>(w, x, out, row)
                           : quantise_row<S, false>(w, x, out, row);
}

} // namespace
} // namespace twill::gpu::host
