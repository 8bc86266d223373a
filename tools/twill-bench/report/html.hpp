// html: one self-contained page per run: its look and its charts are those of the daemon's pages
// (net/page/), and nothing is loaded from outside. Without JavaScript the charts are plain SVG.
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/report.hpp"
#include "tools/twill-bench/engine/scraper.hpp"
#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

/// A run of `serve`: its figures, its remarks, how its times are spread and follow the load, the
/// run over time, the server's metrics meanwhile, its options, and this machine.
std::string serve_page(const report_input& in, const std::vector<std::string>& remarks,
                       const scrape_log& server);

/// A sweep: its table, its remarks, its charts.
std::string sweep_page(const sweep& of);

} // namespace twill::bench
