// compare: results side by side, each with its ratio to the first. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/twill-bench/report/svg_chart.hpp"
#include "tools/twill-bench/runs/published_sweeps.hpp"
#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

struct named_sweep {
  std::string name; ///< heads its columns
  sweep figures;
};

/// One table per metric: rows are cells, then each run's value and its ratio to the first run's.
/// There is no requests/s ratio where the actual output lengths of two runs differ by over 2 %:
/// shorter replies are not faster service. References get no ratio: their hardware differs.
std::string compare_sweeps(const std::vector<named_sweep>& runs,
                           const std::vector<reference>& references);

/// One line per run over the cells.
std::vector<std::pair<std::string, chart>> compare_charts(const std::vector<named_sweep>& runs);

/// One row per key of the result files of `serve` (JSON texts), with ratios to the first. Throws
/// std::runtime_error for a text that is none.
std::string compare_serves(const std::vector<std::pair<std::string, std::string>>& named_texts);

} // namespace twill::bench
