// sweep_report: writes a sweep (a grid of input and output lengths, sweep.hpp) as Markdown in the
// form of the published sweeps (published_sweeps.hpp), as CSV, and as charts. All functions but
// write_sweep() are pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/twill-bench/report/svg_chart.hpp"
#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

/// A table in the form of the published sweeps, then a table with actual lengths, how requests
/// ended, TTFT and TPOT. `image` is the file extension of the charts that it links to ("svg" or
/// "png").
std::string sweep_markdown(const sweep& of, const std::string& image);
/// One line per cell and phase, with all figures.
std::string sweep_csv(const sweep& of);
/// Pairs of a file name without extension and a chart, which has one line per input length over the
/// output lengths.
std::vector<std::pair<std::string, chart>> sweep_charts(const sweep& of);
/// What a reader must know before trusting the figures.
std::vector<std::string> sweep_remarks(const sweep& of);

/// Writes sweep.md, sweep.csv, sweep.html and four charts to `folder`. Returns a remark about the
/// PNG files. Throws std::runtime_error for a file that can't be written.
std::string write_sweep(const std::string& folder, const sweep& of);

} // namespace twill::bench
