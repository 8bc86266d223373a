// tables: a sweep as Markdown in the form of the published sweeps, as CSV, and as charts. Pure
// functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/twill-bench/report/svg_chart.hpp"
#include "tools/twill-bench/sweep/sweep.hpp"

namespace twill::bench {

/// The table in the published form, then a table of actual lengths, how requests ended, TTFT and
/// TPOT. `image` is the extension of the charts it links ("svg", "png").
std::string sweep_markdown(const sweep& of, const std::string& image);
/// One line per cell and phase, every figure.
std::string sweep_csv(const sweep& of);
/// File name without extension, and chart: one line per input length over output lengths.
std::vector<std::pair<std::string, chart>> sweep_charts(const sweep& of);
/// Remarks that a reader must know before trusting the figures.
std::vector<std::string> sweep_remarks(const sweep& of);

} // namespace twill::bench
