// serve_charts: a run of `serve` as charts: how its requests' times are spread, how they follow the
// load, and how the run went over time. Pure functions.
#pragma once

#include <vector>

#include "tools/twill-bench/engine/report.hpp"
#include "tools/twill-bench/report/svg_chart.hpp"

namespace twill::bench {

/// How many requests had which TTFT and E2EL, and how many gaps which ITL; without what no request
/// had.
std::vector<chart> distribution_charts(const report_input& in);

/// Median and P95 of TTFT and E2EL against the requests that were sent per second, and against
/// those in flight, when a request was sent. Without what did not vary.
std::vector<chart> load_charts(const report_input& in);

/// Output tokens per second, and median and P95 of the latencies of the requests that began in each
/// slice of time.
std::vector<chart> time_charts(const report_input& in);

/// Seconds cut into at most 120 slices of whole seconds.
struct time_slices {
  double length_s = 1;
  std::size_t n = 1;

  explicit time_slices(double duration_s);
  std::size_t of(double at_s) const;
  std::vector<std::string> names() const; ///< where each begins
};

} // namespace twill::bench
