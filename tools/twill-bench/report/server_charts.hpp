// server_charts: what a server's /metrics said during a run, as charts. Pure functions.
//
// A histogram is one chart: the mean of what it observed since the scrape before, its `_sum` by its
// `_count`. Counters are rates. What most readers look for comes first, by the names that vLLM and
// twill share; series that belong together share a chart.
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
