#include "tools/twill-bench/engine/arrivals.hpp"

#include <cmath>

namespace twill::bench {
namespace {

double gap_s(double rate_per_s, double burstiness, random_source& random) {
  return std::isinf(burstiness) ? 1.0 / rate_per_s
                                : random.gamma(burstiness, 1.0 / (rate_per_s * burstiness));
}

} // namespace

std::vector<double> arrival_gaps_s(std::size_t n_requests, double rate_per_s, double burstiness,
                                   random_source& random) {
  std::vector<double> gaps(n_requests, 0.0);
  if (std::isinf(rate_per_s)) return gaps;
  for (double& gap : gaps)
    gap = gap_s(rate_per_s, burstiness, random);
  return gaps;
}

std::vector<double> arrival_times_s(std::size_t n_requests, double rate_per_s, double burstiness,
                                    random_source& random) {
  std::vector<double> times = arrival_gaps_s(n_requests, rate_per_s, burstiness, random);
  double sum = 0;
  for (double& time : times) {
    sum += time;
    time = sum;
  }
  if (sum <= 0) return times;
  const double scale = static_cast<double>(n_requests) / rate_per_s / sum;
  for (double& time : times)
    time *= scale;
  return times;
}

std::vector<double> ramp_times_s(std::size_t n_requests, const rate_ramp& ramp, double burstiness,
                                 random_source& random) {
  std::vector<double> times(n_requests);
  double sum = 0;
  for (std::size_t i = 0; i < n_requests; ++i) {
    const double done = double(i) / double(n_requests);
    const double rate = ramp.exponential
                            ? ramp.start_per_s * std::pow(ramp.end_per_s / ramp.start_per_s, done)
                            : ramp.start_per_s + (ramp.end_per_s - ramp.start_per_s) * done;
    times[i] = sum += gap_s(rate, burstiness, random);
  }
  return times;
}

} // namespace twill::bench
