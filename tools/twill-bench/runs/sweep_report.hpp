// sweep_report: a sweep as Markdown in the form of the published sweeps, as CSV, and as charts.
// All functions but write_sweep() are pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/twill-bench/report/svg_chart.hpp"
#include "tools/twill-bench/runs/sweep.hpp"

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

/// sweep.md, sweep.csv, sweep.html and four charts in `folder`; returns a remark about the PNG
/// files. Throws std::runtime_error for a file that can't be written.
std::string write_sweep(const std::string& folder, const sweep& of);

} // namespace twill::bench
