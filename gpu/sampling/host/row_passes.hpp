// The passes over one row of logits or softmax weights that sampling needs, vectorised for the
// host.
//
// Sums are f32 within runs of 1024 entries and f64 across runs. A NaN counts as an absent entry.
// The functions are pure and work on the caller's memory; any thread.
#pragma once

#include <cstdint>

namespace twill::gpu::host {

/// How many of a row's weights reach each of three thresholds, and their sums.
struct weight_tally {
  std::int32_t count[3];
  double mass[3];
};

/// Selects the weights that take part in the draw: weights above `threshold`, and those weights
/// equal to it whose token id is at most `last_tie`.
struct weight_cut {
  float threshold;
  std::int32_t last_tie;
};

/// Lowest id of the largest entry; -1 if none is above -infinity.
std::int32_t argmax(const float* x, std::int32_t n);

/// Largest entry; -infinity if there is none.
float largest(const float* x, std::int32_t n);

/// Sum of exp(x - max).
double sum_exp(const float* x, std::int32_t n, float max);

/// x = exp((x - max) * inverse_temperature).
void to_weights(float* x, std::int32_t n, float max, float inverse_temperature);

weight_tally tally(const float* weights, std::int32_t n, const float (&thresholds)[3],
                   bool with_mass);

double mass_of(const float* weights, std::int32_t n, weight_cut cut);

/// The id at which the running sum of the weights, in the order of ids, passes `target`. Where
/// rounding keeps the sum from passing it, the result is the last id that takes part in the draw:
/// of the run of 1024 entries that should have passed it, or of the whole row. The result is -1 if
/// no id takes part.
std::int32_t draw(const float* weights, std::int32_t n, weight_cut cut, double target);

/// Id of the nth entry (from 1) that equals `value`.
std::int32_t nth_equal(const float* weights, std::int32_t n, float value, std::int32_t nth);

/// Lowest id of the largest entry that comes after (value, id) in descending order; -1 if none.
std::int32_t next_largest(const float* x, std::int32_t n, float value, std::int32_t id);

} // namespace twill::gpu::host
