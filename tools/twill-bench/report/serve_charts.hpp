// serve_charts: draws a run of `serve` as charts: the distribution of its latencies, how latencies
// depend on the load, and the course of the run over time. The functions are pure.
#pragma once

#include <vector>

#include "tools/twill-bench/engine/report.hpp"
#include "tools/twill-bench/report/svg_chart.hpp"

namespace twill::bench {

/// The number of requests per range of TTFT and of E2EL, and the number of gaps per range of ITL.
/// Charts without any value are left out.
std::vector<chart> distribution_charts(const report_input& in);

/// Median and P95 of TTFT and E2EL, drawn over the rate at which requests were sent and over the
/// number in flight, each at the time when a request was sent. A load that did not vary gives no
/// chart.
std::vector<chart> load_charts(const report_input& in);

/// Output tokens per second, and median and P95 of the latencies of the requests that began in each
/// time slice.
std::vector<chart> time_charts(const report_input& in);

/// The time of a run, cut into at most 120 slices of whole seconds.
struct time_slices {
  double length_s = 1;
  std::size_t n = 1;

  explicit time_slices(double duration_s);
  std::size_t of(double at_s) const;
  std::vector<std::string> names() const; ///< the start of each slice
};

} // namespace twill::bench
