#include "tools/twill-bench/engine/arrivals.hpp"

#include <cmath>

namespace twill::bench {

std::vector<double> arrival_gaps_s(std::size_t n_requests, double rate_per_s, double burstiness,
                                   random_source& random) {
  std::vector<double> gaps(n_requests, 0.0);
  if (std::isinf(rate_per_s)) return gaps;
  for (double& gap : gaps)
    gap = std::isinf(burstiness) ? 1.0 / rate_per_s
                                 : random.gamma(burstiness, 1.0 / (rate_per_s * burstiness));
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

} // namespace twill::bench
