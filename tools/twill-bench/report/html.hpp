// html: one self-contained page per run: its look and its charts are those of the daemon's pages
// (net/page/), and nothing is loaded from outside. Without JavaScript the charts are plain SVG.
// Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/twill-bench/engine/report.hpp"
#include "tools/twill-bench/engine/scraper.hpp"
#include "tools/twill-bench/report/svg_chart.hpp"
#include "tools/twill-bench/sweep/sweep.hpp"

namespace twill::bench {

/// A run of `serve`: its table, its remarks, its options, its requests and tokens over time, the
/// server's metrics meanwhile, and this machine.
std::string serve_page(const report_input& in, const std::vector<std::string>& remarks,
                       const scrape_log& server);

/// A sweep: its table, its remarks, its charts.
std::string sweep_page(const sweep& of);

/// Requests over the run: output tokens per second, and the median latencies of those that began
/// in each slice of time.
std::vector<chart> serve_charts(const report_input& in);

/// Those series of the server that changed, counters as rates per second.
std::vector<chart> server_charts(const scrape_log& server);

} // namespace twill::bench
