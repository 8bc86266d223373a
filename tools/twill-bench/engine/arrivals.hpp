// arrivals: when requests are due, fixed before the run starts.
//
// Fixing the times ahead keeps a slow server from slowing its own load (coordinated omission).
// Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/twill-bench/engine/random.hpp"

namespace twill::bench {

/// Gaps between arrivals in seconds: gamma with mean 1/rate and shape `burstiness`; shape 1 is a
/// Poisson process, below 1 burstier, above 1 more even, infinite: constant gaps. An infinite rate
/// gives zeros.
std::vector<double> arrival_gaps_s(std::size_t n_requests, double rate_per_s, double burstiness,
                                   random_source& random);

/// Running sums of the gaps, scaled (as vLLM's `bench serve` does) so that the last request is due
/// at exactly n / rate.
std::vector<double> arrival_times_s(std::size_t n_requests, double rate_per_s, double burstiness,
                                    random_source& random);

/// The rate rises from `start_per_s` with the first request to `end_per_s` with the last, by equal
/// steps or by equal factors per request, as vLLM's --ramp-up-strategy has it. Not scaled.
struct rate_ramp {
  double start_per_s = 0, end_per_s = 0;
  bool exponential = false;
};
std::vector<double> ramp_times_s(std::size_t n_requests, const rate_ramp& ramp, double burstiness,
                                 random_source& random);

} // namespace twill::bench
