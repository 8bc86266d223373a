// side_by_side: a Markdown table of what several runs measured, with ratios to the first run.
// `compare`, `campaign` and `versus` write such tables. The functions are pure.
#pragma once

#include <string>
#include <vector>

namespace twill::bench {

/// What one run measured for one row.
struct side_value {
  std::vector<double> rounds; ///< the figure of each repetition; empty: there is none
  std::string absent;         ///< shown where there is no figure, for example "skipped"
  std::string no_ratio;       ///< shown in place of the ratio; empty: the ratio is shown
};

struct side_row {
  std::vector<std::string> labels; // (n_labels)
  std::vector<side_value> values;  // (n_runs)
  bool more_is_better = true;      ///< only used by ratio_kind::first_better_by
};

struct side_run {
  std::string name;
  bool has_ratio = true; ///< not used for the first run, which never has one
};

enum class ratio_kind {
  to_first,       ///< the run's figure divided by that of the first run
  first_better_by ///< how many times better the first run is; above 1, it is better
};

struct side_by_side {
  std::vector<std::string> labels; ///< headings of the columns before those of the runs
  bool labels_are_numbers = false; ///< aligns the first column right
  std::vector<side_run> runs;      ///< at least one
  ratio_kind ratio = ratio_kind::to_first;
  std::vector<side_row> rows;
};

/// A figure that was measured once is shown alone, others as "median (least to most)". Ratios are
/// taken within each round and shown in the same way. A cell of ratios is empty if a run has no
/// figure, if a round would divide by zero, or, with first_better_by, if a figure is not above 0.
std::string side_by_side_markdown(const side_by_side& table);

} // namespace twill::bench
