// compare: puts results side by side, each with its ratio to the first. The functions are pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/twill-bench/report/svg_chart.hpp"
#include "tools/twill-bench/runs/published_sweeps.hpp"
#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

struct named_sweep {
  std::string name; ///< the heading of its columns
  sweep figures;
};

/// One table per metric. A row is a cell of the sweeps (a pair of input and output length), with
/// the value of each run and its ratio to that of the first run. There is no ratio of requests/s
/// where the actual output lengths of two runs differ by over 2 %, because shorter replies do not
/// show a faster server. `references`, which are published sweeps, have no ratio, because they ran
/// on other hardware.
std::string compare_sweeps(const std::vector<named_sweep>& runs,
                           const std::vector<reference>& references);

/// One chart per metric, with one line per run over the cells.
std::vector<std::pair<std::string, chart>> compare_charts(const std::vector<named_sweep>& runs);

/// A table with one row per key of the result files of `serve`, given as JSON texts, with ratios to
/// the first file. Throws std::runtime_error when a text is not such a file.
std::string compare_serves(const std::vector<std::pair<std::string, std::string>>& named_texts);

} // namespace twill::bench
