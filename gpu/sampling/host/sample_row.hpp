// Sampling of one row by one host thread. Nothing is sorted: top_k and top_p find their threshold
// by a search over the bit patterns of the weights, which order like the weights.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/philox.hpp"
#include "gpu/sampling/detail/row_math.hpp"
#include "gpu/sampling/host/row_passes.hpp"

namespace twill::gpu::detail {

/// low + i * (high - low) / 4, rounded down.
inline std::uint32_t quarter(std::uint32_t low, std::uint32_t high, int i) {
  return low + static_cast<std::uint32_t>(std::uint64_t{high - low} * static_cast<unsigned>(i) / 4);
}

/// An interval [low, high) of bit patterns in which the threshold of top_k or top_p is searched.
/// Keeping all weights at or above `low` keeps enough of them for top_k or top_p; keeping those at
/// or above `high` keeps too few.
struct bracket {
  std::uint32_t low, high;
  std::int32_t count_low, count_high;
  double mass_high;

  void thresholds(float (&t)[3]) const {
    for (int i = 0; i < 3; ++i)
      t[i] = bits_to_f32(quarter(low, high, i + 1));
  }
};

/// Makes the logits of the tokens that the row's mask excludes -infinity.
inline void apply_mask(float* x, std::int32_t n, const std::uint32_t* mask) {
  for (std::int32_t word = 0; word < (n + 31) / 32; ++word) {
    const std::uint32_t allowed = mask[word];
    if (allowed == 0xffffffffu) continue;
    const std::int32_t first = word * 32;
    const std::int32_t last = n - first < 32 ? n : first + 32;
    for (std::int32_t i = first; i < last; ++i)
      if ((allowed >> (i - first) & 1u) == 0) x[i] = -INFINITY;
  }
}

/// The lowest id that the mask lets through; 0 when there is none.
inline std::int32_t first_allowed(const std::uint32_t* mask, std::int32_t n) {
  for (std::int32_t i = 0; i < n; ++i)
    if ((mask[i / 32] >> (i % 32) & 1u) != 0) return i;
  return 0;
}

/// Applies biases and bans, then the penalties. Ids may repeat among the biases.
inline void apply_edits(float* x, std::int32_t n, const sample_row& row) {
  for (std::int32_t i = 0; i < row.n_biases; ++i) {
    const token_bias b = row.biases[i];
    if (b.id >= 0 && b.id < n) x[b.id] += b.bias;
  }
  for (std::int32_t i = 0; i < row.n_counts; ++i) {
    const token_count c = row.counts[i];
    if (c.id >= 0 && c.id < n) x[c.id] = penalised(x[c.id], c, row);
  }
}

/// Keeps the k largest of the weights at or above `low`; among equal weights the lowest ids.
inline host::weight_cut keep_top_k(const float* w, std::int32_t n, std::uint32_t low,
                                   std::int32_t k) {
  float t[3] = {bits_to_f32(low), bits_to_f32(low), bits_to_f32(low)};
  host::weight_tally tally = host::tally(w, n, t, false);
  bracket b{low, f32_to_bits(1.0f) + 1, tally.count[0], 0, 0};
  if (b.count_low <= k) return {bits_to_f32(low), every_tie};
  while (b.high - b.low > 1) {
    b.thresholds(t);
    tally = host::tally(w, n, t, false);
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
  return {value, host::nth_equal(w, n, value, k - b.count_high)};
}

/// Of the weights that `cut` selects, keeps the largest ones, as few as possible, so that their sum
/// reaches `target`. Among equal weights it keeps those with the lowest token ids.
inline host::weight_cut keep_top_p(const float* w, std::int32_t n, host::weight_cut cut,
                                   double target) {
  bracket b{f32_to_bits(cut.threshold), f32_to_bits(1.0f) + 1, every_tie, 0, 0};
  std::int32_t last_tie = cut.last_tie;
  while (b.high - b.low > 1 && b.count_low - b.count_high > 1) {
    float t[3];
    b.thresholds(t);
    const host::weight_tally tally = host::tally(w, n, t, true);
    const bracket before = b;
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t at = f32_to_bits(t[i]);
      if (at <= before.low)
        continue; // the threshold of `cut` itself, of whose equal weights only some may take part
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
      host::nth_equal(w, n, value, ties < 1 ? 1 : static_cast<std::int32_t>(ties));
  return {value, id < last_tie ? id : last_tie};
}

/// The drawn id, or -1 when every logit is -infinity or NaN. Overwrites x.
inline std::int32_t choose(float* x, std::int32_t n, const sample_row& row) {
  if (!asks_for_draw(row)) return host::argmax(x, n);
  const float max = host::largest(x, n);
  if (!(max > -INFINITY)) return -1;
  if (max == INFINITY) return host::argmax(x, n);
  host::to_weights(x, n, max, inverse_temperature(row));

  const std::uint32_t least = least_weight(row);
  host::weight_cut cut{bits_to_f32(least), every_tie};
  if (row.top_k > 0 && row.top_k < n) cut = keep_top_k(x, n, least, row.top_k);
  double mass = host::mass_of(x, n, cut);
  if (row.top_p < 1) {
    cut = keep_top_p(x, n, cut, static_cast<double>(row.top_p) * mass);
    mass = host::mass_of(x, n, cut);
  }
  return host::draw(x, n, cut, uniform(row.seed, row.counter) * mass);
}

inline double log_sum_exp(const float* x, std::int32_t n, float max) {
  return log_of_sum(host::sum_exp(x, n, max));
}

inline float token_logprob(const float* x, std::int32_t n, std::int32_t id) {
  const float max = host::largest(x, n);
  return log_probability(x[id], max, log_sum_exp(x, n, max));
}

/// Samples row r. `raw` is room for a copy of the row where log-probabilities are asked for.
inline void sample_one(const sample_batch& args, long r, float* raw) {
  float* x = args.logits + r * args.stride;
  const std::int32_t n = args.vocab;
  const sample_row row = args.params[r];
  const bool edited = is_edited(row);
  const bool reports = args.reports(row);
  float max = 0;
  double log_sum = 0;
  const float* original = x;
  if (reports) {
    max = host::largest(x, n);
    log_sum = log_sum_exp(x, n, max);
    float value = INFINITY;
    std::int32_t id = -1;
    const std::int32_t n_top = args.tops(row);
    for (std::int32_t i = 0; i < n_top; ++i) {
      id = host::next_largest(x, n, value, id);
      if (id >= 0) value = x[id];
      args.top_ids[r * args.max_top + i] = id;
      args.top_logprobs[r * args.max_top + i] =
          id < 0 ? -INFINITY : log_probability(value, max, log_sum);
      if (id < 0) { // no entry is left, and later passes must find none
        value = -INFINITY;
        id = every_tie;
      }
    }
    if (edited || asks_for_draw(row)) {
      for (std::int32_t i = 0; i < n; ++i)
        raw[i] = x[i];
      original = raw;
    }
  }
  if (row.mask != nullptr) apply_mask(x, n, row.mask);
  // The token that is chosen if the biases leave none: the mask takes precedence over biases.
  std::int32_t fallback = row.n_biases > 0 || row.mask != nullptr ? host::argmax(x, n) : -1;
  if (fallback < 0 && row.mask != nullptr) fallback = first_allowed(row.mask, n);
  if (edited) apply_edits(x, n, row);
  std::int32_t id = choose(x, n, row);
  if (id < 0) id = fallback < 0 ? 0 : fallback;
  args.tokens[r] = id;
  if (reports) args.logprobs[r] = log_probability(original[id], max, log_sum);
}

} // namespace twill::gpu::detail
