// markdown: formats the rows of the tables that sweep, campaign, compare and versus write. The
// functions are pure.
#pragma once

#include <string>
#include <vector>

namespace twill::bench {

/// "| a | b |"; an empty cell is "| |".
inline std::string markdown_row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells)
    out += cell.empty() ? " |" : " " + cell + " |";
  return out + "\n";
}

/// The row of column names and the line below it. `first` is the alignment of the first column; all
/// other columns are aligned right.
inline std::string markdown_heading(const std::vector<std::string>& names,
                                    const std::string& first = "---:") {
  std::vector<std::string> rule(names.size(), "---:");
  rule.front() = first;
  return markdown_row(names) + markdown_row(rule);
}

} // namespace twill::bench
