// Sampling of one row, the algorithm that every backend shares.
//
// The template parameter Passes walks the row: host_passes with one thread, team_passes with the
// lanes of a Kokkos team, which then call every function here together. Nothing is sorted: top_k
// and top_p search their threshold over the bit patterns of the weights, which have the order of
// the weights.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/kernel_math.hpp"
#include "gpu/detail/philox.hpp"
#include "gpu/sampling/host/row_passes.hpp"
#include "gpu/sampling/sample.hpp"

namespace twill::gpu::detail {

inline constexpr std::int32_t every_tie = 0x7fffffff;

/// low + i quarters of the distance to high, rounded down.
TWILL_KERNEL_INLINE std::uint32_t quarter(std::uint32_t low, std::uint32_t high, int i) {
  return low + static_cast<std::uint32_t>(std::uint64_t{high - low} * static_cast<unsigned>(i) / 4);
}

/// A bracket of bit patterns [low, high): enough weights are at or above low, too few at or above
/// high.
struct bracket {
  std::uint32_t low, high;
  std::int32_t count_low, count_high;
  double mass_low, mass_high;

  TWILL_KERNEL_INLINE void thresholds(float (&t)[3]) const {
    for (int i = 0; i < 3; ++i)
      t[i] = bits_to_f32(quarter(low, high, i + 1));
  }
};

/// Makes the logits of the tokens that the row's mask excludes -infinity.
template <class Passes>
TWILL_KERNEL_INLINE void apply_mask(const Passes& passes, float* x, std::int32_t n,
                                    const std::uint32_t* mask) {
  passes.each((n + 31) / 32, [&](const std::int32_t word) {
    const std::uint32_t allowed = mask[word];
    if (allowed == 0xffffffffu) return;
    const std::int32_t first = word * 32;
    const std::int32_t last = n - first < 32 ? n : first + 32;
    for (std::int32_t i = first; i < last; ++i)
      if ((allowed >> (i - first) & 1u) == 0) x[i] = -INFINITY;
  });
}

/// The lowest id that the mask lets through; 0 when there is none.
TWILL_KERNEL_INLINE std::int32_t first_allowed(const std::uint32_t* mask, std::int32_t n) {
  for (std::int32_t i = 0; i < n; ++i)
    if ((mask[i / 32] >> (i % 32) & 1u) != 0) return i;
  return 0;
}

/// Applies biases and bans, then the penalties. Ids may repeat among the biases, so one lane adds
/// them.
template <class Passes>
TWILL_KERNEL_INLINE void apply_edits(const Passes& passes, float* x, std::int32_t n,
                                     const sample_row& row) {
  passes.single([&] {
    for (std::int32_t i = 0; i < row.n_biases; ++i) {
      const token_bias b = row.biases[i];
      if (b.id >= 0 && b.id < n) x[b.id] += b.bias;
    }
  });
  passes.each(row.n_counts, [&](const std::int32_t i) {
    const token_count c = row.counts[i];
    if (c.id < 0 || c.id >= n) return;
    float v = x[c.id];
    if (c.in_output + c.in_prompt > 0)
      v = v > 0 ? v / row.repetition_penalty : v * row.repetition_penalty;
    if (c.in_output > 0)
      v -= row.presence_penalty + row.frequency_penalty * static_cast<float>(c.in_output);
    x[c.id] = v;
  });
}

/// Keeps the k largest of the weights at or above `low`; among equal weights the lowest ids.
template <class Passes>
TWILL_KERNEL_INLINE host::weight_cut keep_top_k(const Passes& passes, const float* w,
                                                std::int32_t n, std::uint32_t low, std::int32_t k) {
  float t[3] = {bits_to_f32(low), bits_to_f32(low), bits_to_f32(low)};
  host::weight_tally tally = passes.tally(w, n, t, false);
  bracket b{low, f32_to_bits(1.0f) + 1, tally.count[0], 0, 0, 0};
  if (b.count_low <= k) return {bits_to_f32(low), every_tie};
  while (b.high - b.low > 1) {
    b.thresholds(t);
    tally = passes.tally(w, n, t, false);
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t at = f32_to_bits(t[i]);
      if (tally.count[i] == k) return {t[i], every_tie};
      if (tally.count[i] > k && at > b.low)
        b.low = at;
      else if (tally.count[i] < k && at < b.high) {
        b.high = at;
        b.count_high = tally.count[i];
      }
    }
  }
  const float value = bits_to_f32(b.low);
  return {value, passes.nth_equal(w, n, value, k - b.count_high)};
}

/// Keeps the smallest set of the largest weights of `cut` whose sum reaches `target`; among equal
/// weights the lowest ids.
template <class Passes>
TWILL_KERNEL_INLINE host::weight_cut keep_top_p(const Passes& passes, const float* w,
                                                std::int32_t n, host::weight_cut cut,
                                                double target) {
  bracket b{f32_to_bits(cut.threshold), f32_to_bits(1.0f) + 1, every_tie, 0, 0, 0};
  std::int32_t last_tie = cut.last_tie;
  while (b.high - b.low > 1 && b.count_low - b.count_high > 1) {
    float t[3];
    b.thresholds(t);
    const host::weight_tally tally = passes.tally(w, n, t, true);
    const bracket before = b;
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t at = f32_to_bits(t[i]);
      if (at <= before.low)
        continue; // the threshold of `cut` itself, whose ties may be cut off in part
      if (tally.mass[i] >= target && at > b.low) {
        b.low = at;
        b.count_low = tally.count[i];
        last_tie = every_tie;
      } else if (tally.mass[i] < target && at < b.high) {
        b.high = at;
        b.count_high = tally.count[i];
        b.mass_high = tally.mass[i];
      }
    }
  }
  const float value = bits_to_f32(b.low);
  if (b.high - b.low > 1) return {value, last_tie};
  const double ties = ::ceil((target - b.mass_high) / static_cast<double>(value));
  if (!(ties < every_tie)) return {value, last_tie};
  const std::int32_t id =
      passes.nth_equal(w, n, value, ties < 1 ? 1 : static_cast<std::int32_t>(ties));
  return {value, id < last_tie ? id : last_tie};
}

/// The drawn id, or -1 when every logit is -infinity or NaN. Overwrites x.
template <class Passes>
TWILL_KERNEL_INLINE std::int32_t choose(const Passes& passes, float* x, std::int32_t n,
                                        const sample_row& row) {
  if (row.temperature <= 0 || row.top_k == 1) return passes.argmax(x, n);
  const float max = passes.largest(x, n);
  if (!(max > -INFINITY)) return -1;
  if (max == INFINITY) return passes.argmax(x, n);
  const float inverse = 1.0f / row.temperature;
  passes.to_weights(x, n, max, inverse < 1e30f ? inverse : 1e30f);

  const std::uint32_t least = row.min_p > 0 ? f32_to_bits(row.min_p < 1 ? row.min_p : 1.0f) : 1u;
  host::weight_cut cut{bits_to_f32(least), every_tie};
  if (row.top_k > 0 && row.top_k < n) cut = keep_top_k(passes, x, n, least, row.top_k);
  double mass = passes.mass_of(x, n, cut);
  if (row.top_p < 1) {
    cut = keep_top_p(passes, x, n, cut, static_cast<double>(row.top_p) * mass);
    mass = passes.mass_of(x, n, cut);
  }
  return passes.draw(x, n, cut, uniform(row.seed, row.counter) * mass);
}

/// The log-probability of logit x; the maximum is subtracted first.
TWILL_KERNEL_INLINE float log_probability(float x, float max, double log_sum) {
  if (!(x > -INFINITY)) return -INFINITY;
  const double above = x == max ? 0.0 : static_cast<double>(x) - static_cast<double>(max);
  return static_cast<float>(above - log_sum);
}

template <class Passes>
TWILL_KERNEL_INLINE double log_sum_exp(const Passes& passes, const float* x, std::int32_t n,
                                       float max) {
  const double sum = passes.sum_exp(x, n, max);
  return ::log(sum > 1 ? sum : 1.0);
}

template <class Passes>
TWILL_KERNEL_INLINE void token_logprob(const Passes& passes, const float* x, std::int32_t n,
                                       std::int32_t id, float* logprob) {
  const float max = passes.largest(x, n);
  const double log_sum = log_sum_exp(passes, x, n, max);
  passes.single([&] { *logprob = log_probability(x[id], max, log_sum); });
}

/// sample_args in a form that kernels copy.
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

/// Samples row r. `raw` is room for a copy of the row where log-probabilities are asked for.
template <class Passes>
TWILL_KERNEL_INLINE void sample_one(const Passes& passes, const sample_batch& args, long r,
                                    float* raw) {
  float* x = args.logits + r * args.stride;
  const std::int32_t n = args.vocab;
  const sample_row row = args.params[r];
  const bool edited = row.n_biases > 0 || row.n_counts > 0 || row.mask != nullptr;
  const bool reports = args.any_logprobs && row.n_top >= 0;
  float max = 0;
  double log_sum = 0;
  const float* original = x;
  if (reports) {
    max = passes.largest(x, n);
    log_sum = log_sum_exp(passes, x, n, max);
    float value = INFINITY;
    std::int32_t id = -1;
    const std::int32_t n_top = row.n_top < args.max_top ? row.n_top : args.max_top;
    for (std::int32_t i = 0; i < n_top; ++i) {
      id = passes.next_largest(x, n, value, id);
      if (id >= 0) value = x[id];
      const float logprob = id < 0 ? -INFINITY : log_probability(value, max, log_sum);
      passes.single([&] {
        args.top_ids[r * args.max_top + i] = id;
        args.top_logprobs[r * args.max_top + i] = logprob;
      });
      if (id < 0) { // no entry is left, and the next passes must find none
        value = -INFINITY;
        id = every_tie;
      }
    }
    if (edited || (row.temperature > 0 && row.top_k != 1)) {
      passes.each(n, [&](const std::int32_t i) { raw[i] = x[i]; });
      original = raw;
    }
  }
  if (row.mask != nullptr) apply_mask(passes, x, n, row.mask);
  // What is drawn where the biases leave no token: the mask outranks them.
  std::int32_t fallback = row.n_biases > 0 || row.mask != nullptr ? passes.argmax(x, n) : -1;
  if (fallback < 0 && row.mask != nullptr) fallback = first_allowed(row.mask, n);
  if (edited) apply_edits(passes, x, n, row);
  std::int32_t id = choose(passes, x, n, row);
  if (id < 0) id = fallback < 0 ? 0 : fallback;
  const float logprob = reports ? log_probability(original[id], max, log_sum) : 0;
  passes.single([&] {
    args.tokens[r] = id;
    if (reports) args.logprobs[r] = logprob;
  });
}

} // namespace twill::gpu::detail
