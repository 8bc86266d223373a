// html: writes one self-contained page per run. Its style and its charts are those of the daemon's
// pages (net/page/), and it loads nothing from outside. Without JavaScript the charts are plain
// SVG. The functions are pure.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/report.hpp"
#include "tools/twill-bench/engine/scraper.hpp"
#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

/// The page of a run of `serve`: its figures, its remarks, the distribution of its latencies and
/// their dependence on the load, the run over time, the server's metrics during the run, its
/// options, and a description of this machine.
std::string serve_page(const report_input& in, const std::vector<std::string>& remarks,
                       const scrape_log& server);

/// The page of a sweep: its table, its remarks, its charts.
std::string sweep_page(const sweep& of);

} // namespace twill::bench
