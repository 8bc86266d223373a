// server_charts: draws what a server's /metrics reported during a run as charts. The functions are
// pure.
//
// A histogram becomes one chart: the mean of the values observed since the previous scrape, which
// is the change of its `_sum` divided by the change of its `_count`. Counters become rates. The
// charts that most readers look for come first; they are chosen by the metric names that vLLM and
// twill share. Related series share a chart.
#pragma once

#include <vector>

#include "tools/twill-bench/engine/scraper.hpp"
#include "tools/twill-bench/report/svg_chart.hpp"

namespace twill::bench {

struct server_chart_list {
  std::vector<chart> known;  ///< requests, tokens, KV cache, latencies, steps
  std::vector<chart> others; ///< every other series that changed
};

server_chart_list server_charts(const scrape_log& server);

} // namespace twill::bench
