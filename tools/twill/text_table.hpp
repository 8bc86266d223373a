// text_table: lays out a table of text for the width of a terminal. The functions are pure; any
// thread may call them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace twill::tools {

struct table_column {
  std::string title;
  std::string short_title;              ///< used when the table is too wide; empty: use `title`
  std::vector<std::string> cells;       ///< one per row; all columns have the same number
  std::vector<std::string> short_cells; ///< used when the table is too wide; empty: use `cells`
  bool is_name = false;     ///< aligned to the left, and shortened with "..." when the table is too
                            ///< wide
  bool keeps_apart = false; ///< never shorten a name so far that it looks like the beginning of
                            ///< another one
};

/// Returns the rows of the table, the titles first, none longer than `room` columns. A table that
/// is too wide is narrowed in steps: names are shortened to 12 columns (or to the width that keeps
/// them distinct), gaps shrink to one column, and columns that have short_cells show these instead
/// of cells. If that is not enough, columns are left out, the last one first, and an added line
/// says which ones and how wide a terminal must be to show them. Cells must be UTF-8 without
/// control characters; each code point counts as one column.
std::vector<std::string> fit_table(std::vector<table_column> columns, std::size_t room);

/// Breaks `text` into lines of at most `room` columns, at spaces if possible; all lines after the
/// first are indented by two.
std::vector<std::string> wrap_line(const std::string& text, std::size_t room);

} // namespace twill::tools
