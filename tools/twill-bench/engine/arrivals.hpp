// arrivals: when requests are due, fixed before the run starts.
//
// Fixing the times ahead keeps a slow server from slowing its own load (coordinated omission).
// Pure.
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

} // namespace twill::bench
