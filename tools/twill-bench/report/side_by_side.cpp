#include "tools/twill-bench/report/side_by_side.hpp"

#include <algorithm>

#include "tools/twill-bench/engine/stats.hpp"
#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/markdown.hpp"

namespace twill::bench {
namespace {

std::string spread(const std::vector<double>& values) {
  if (values.empty()) return "";
  if (values.size() == 1) return fixed(values.front(), 2);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return fixed(percentile(values, 50), 2) + " (" + fixed(*least, 2) + " to " + fixed(*most, 2) +
         ")";
}

/// The ratio of each round; empty when one of them can't be computed.
std::vector<double> ratios(const std::vector<double>& first, const std::vector<double>& run,
                           ratio_kind kind, bool more_is_better) {
  std::vector<double> out;
  for (std::size_t i = 0; i < std::min(first.size(), run.size()); ++i) {
    const bool of_first = kind == ratio_kind::first_better_by && more_is_better;
    const double over = of_first ? first[i] : run[i], under = of_first ? run[i] : first[i];
    if (under == 0 || (kind == ratio_kind::first_better_by && !(over > 0 && under > 0))) return {};
    out.push_back(over / under);
  }
  return out;
}

std::string heading(const side_by_side& table) {
  std::vector<std::string> names = table.labels;
  const std::string& first = table.runs.front().name;
  for (const side_run& run : table.runs) {
    names.push_back(run.name);
    if (&run != &table.runs.front() && run.has_ratio)
      names.push_back(table.ratio == ratio_kind::to_first ? "/ " + first : first + " better by");
  }
  return markdown_heading(names, table.labels_are_numbers ? "---:" : ":---");
}

} // namespace

std::string side_by_side_markdown(const side_by_side& table) {
  std::string out = heading(table);
  for (const side_row& row : table.rows) {
    std::vector<std::string> cells = row.labels;
    for (std::size_t r = 0; r < table.runs.size(); ++r) {
      const side_value& value = row.values[r];
      cells.push_back(value.rounds.empty() ? value.absent : spread(value.rounds));
      if (r == 0 || !table.runs[r].has_ratio) continue;
      cells.push_back(!value.no_ratio.empty() ? value.no_ratio
                                              : spread(ratios(row.values[0].rounds, value.rounds,
                                                              table.ratio, row.more_is_better)));
    }
    out += markdown_row(cells);
  }
  return out;
}

} // namespace twill::bench
