// text_table: a table of text that fits into the columns of a terminal. Plain values; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace twill::tools {

struct table_column {
  std::string title;
  std::string short_title;              ///< where the room is short; empty: the title
  std::vector<std::string> cells;       ///< one a row; every column has as many
  std::vector<std::string> short_cells; ///< where the room is short; empty: the cells
  bool is_name = false;     ///< aligned to the left, and cut with "..." where it must be
  bool keeps_apart = false; ///< a name is cut only where no other begins as what is left of it
};

/// The rows of the table with the titles first, none longer than `room` columns. Where the room is
/// short, names are cut to 12 columns (or to what keeps them apart), gaps become one column, and
/// short cells take the place of cells; then columns are left out, the last first, and a line says
/// which and how many columns of a terminal they need. Cells must be UTF-8 without control
/// characters; each code point counts as one column.
std::vector<std::string> fit_table(std::vector<table_column> columns, std::size_t room);

/// `text` in lines of at most `room` columns, broken at spaces where there are any; further lines
/// are indented by two.
std::vector<std::string> wrap_line(const std::string& text, std::size_t room);

} // namespace twill::tools
