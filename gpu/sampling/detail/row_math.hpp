// Functions that all implementations of sampling share: penalties, log-probabilities, and the
// arguments as a struct that is copied into kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/half.hpp"
#include "gpu/sampling/sample.hpp"

namespace twill::gpu::detail {

inline constexpr std::int32_t every_tie = 0x7fffffff;
/// The largest vocabulary. Up to this size the indices computed in a team fit 32 bits, and doubles
/// add up the weights without rounding (weight_bins.hpp).
inline constexpr std::int32_t most_vocab = 1 << 28;

/// A logit after the penalties.
TWILL_KERNEL_INLINE float penalised(float x, const token_count& c, const sample_row& row) {
  if (c.in_output + c.in_prompt > 0)
    x = x > 0 ? x / row.repetition_penalty : x * row.repetition_penalty;
  if (c.in_output > 0)
    x -= row.presence_penalty + row.frequency_penalty * static_cast<float>(c.in_output);
  return x;
}

/// The log-probability of logit x; the maximum is subtracted first.
TWILL_KERNEL_INLINE float log_probability(float x, float max, double log_sum) {
  if (!(x > -INFINITY)) return -INFINITY;
  const double above = x == max ? 0.0 : static_cast<double>(x) - static_cast<double>(max);
  return static_cast<float>(above - log_sum);
}

/// The logarithm of `sum`, the sum of exp(x - max) over a row.
TWILL_KERNEL_INLINE double log_of_sum(double sum) {
  return ::log(sum > 1 ? sum : 1.0);
}

/// Whether a row's token is drawn at random, instead of being the one with the largest logit.
TWILL_KERNEL_INLINE bool asks_for_draw(const sample_row& row) {
  return row.temperature > 0 && row.top_k != 1;
}
TWILL_KERNEL_INLINE bool is_edited(const sample_row& row) {
  return row.n_biases > 0 || row.n_counts > 0 || row.mask != nullptr;
}
TWILL_KERNEL_INLINE float inverse_temperature(const sample_row& row) {
  const float inverse = 1.0f / row.temperature;
  return inverse < 1e30f ? inverse : 1e30f;
}
/// The bits of the least weight that takes part in the draw (min_p). The largest weight is 1.
TWILL_KERNEL_INLINE std::uint32_t least_weight(const sample_row& row) {
  return row.min_p > 0 ? f32_to_bits(row.min_p < 1 ? row.min_p : 1.0f) : 1u;
}

/// sample_args as a struct that is copied into kernels.
struct sample_batch {
  float* logits;
  long rows, stride;
  std::int32_t vocab;
  bool any_logprobs;
  std::int32_t max_top;
  const sample_row* params;
  std::int32_t* tokens;
  float* logprobs;
  std::int32_t* top_ids;
  float* top_logprobs;

  TWILL_KERNEL_MEMBER bool reports(const sample_row& row) const {
    return any_logprobs && row.n_top >= 0;
  }
  /// The number of alternatives that a row reports.
  TWILL_KERNEL_MEMBER std::int32_t tops(const sample_row& row) const {
    return row.n_top < max_top ? row.n_top : max_top;
  }
};

inline sample_batch batch_of(const sample_args& args) {
  return {args.logits.as<float>(),
          args.logits.shape[0],
          args.logits.row_stride,
          static_cast<std::int32_t>(args.logits.shape[1]),
          args.any_logprobs,
          args.max_top,
          args.rows,
          args.tokens,
          args.logprobs,
          args.top_ids,
          args.top_logprobs};
}

} // namespace twill::gpu::detail
