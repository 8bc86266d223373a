// arrivals: the times at which requests are due, computed before the run starts.
//
// Since the times are fixed in advance, a slow server cannot slow down its own load (coordinated
// omission). The functions are pure.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/twill-bench/engine/random.hpp"

namespace twill::bench {

/// Gaps between arrivals in seconds, drawn from a gamma distribution with mean 1/rate and shape
/// `burstiness`. Shape 1 is a Poisson process, a smaller shape is burstier, a larger one more even,
/// and an infinite shape gives constant gaps. An infinite rate gives zeros.
std::vector<double> arrival_gaps_s(std::size_t n_requests, double rate_per_s, double burstiness,
                                   random_source& random);

/// The running sums of arrival_gaps_s(), scaled so that the last request is due at exactly n /
/// rate, as vLLM's `bench serve` does.
std::vector<double> arrival_times_s(std::size_t n_requests, double rate_per_s, double burstiness,
                                    random_source& random);

/// A rate that rises from `start_per_s` at the first request to `end_per_s` at the last one, by
/// equal steps or by equal factors per request, as in vLLM's --ramp-up-strategy. The resulting
/// times are not scaled to an exact end as those of arrival_times_s() are.
struct rate_ramp {
  double start_per_s = 0, end_per_s = 0;
  bool exponential = false;
};
std::vector<double> ramp_times_s(std::size_t n_requests, const rate_ramp& ramp, double burstiness,
                                 random_source& random);

} // namespace twill::bench
