// stats: the summary statistics of the report, with numpy's conventions. The functions are pure.
#pragma once

#include <vector>

namespace twill::bench {

/// The percentile by linear interpolation between order statistics, as numpy.percentile computes it
/// by default (Hyndman and Fan, type 7). `percent` is in [0, 100]. Returns 0 when there are no
/// values.
double percentile(std::vector<double> values, double percent);

struct summary {
  double mean = 0;
  double median = 0;
  double std = 0;                  ///< population standard deviation, numpy.std's default
  std::vector<double> percentiles; // (n_percents)
};

summary summarize(std::vector<double> values, const std::vector<double>& percents);

} // namespace twill::bench
