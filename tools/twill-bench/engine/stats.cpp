#include "tools/twill-bench/engine/stats.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace twill::bench {
namespace {

double percentile_of_sorted(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double rank = std::clamp(percent, 0.0, 100.0) / 100.0 * double(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - double(below)) * (sorted[above] - sorted[below]);
}

} // namespace

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  return percentile_of_sorted(values, percent);
}

summary summarize(std::vector<double> values, const std::vector<double>& percents) {
  summary out;
  std::sort(values.begin(), values.end());
  if (!values.empty()) {
    const auto n = double(values.size());
    out.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0;
    for (const double value : values)
      squares += (value - out.mean) * (value - out.mean);
    out.std = std::sqrt(squares / n);
  }
  out.median = percentile_of_sorted(values, 50);
  for (const double percent : percents)
    out.percentiles.push_back(percentile_of_sorted(values, percent));
  return out;
}

} // namespace twill::bench
