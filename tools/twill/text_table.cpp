#include "tools/twill/text_table.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace twill::tools {
namespace {

constexpr std::size_t least_name = 12; ///< smallest width in columns of a shortened name
constexpr std::string_view cut_mark = "...";

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

/// The first `width` characters of `text`.
std::string_view head_of(std::string_view text, std::size_t width) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins_character(text[i]) && seen++ == width) return text.substr(0, i);
  return text;
}

std::string shortened(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  if (width <= cut_mark.size()) return std::string(head_of(text, width));
  return std::string(head_of(text, width - cut_mark.size())) + std::string(cut_mark);
}

std::size_t width_of(const table_column& column) {
  std::size_t width = width_of(column.title);
  for (const auto& cell : column.cells)
    width = std::max(width, width_of(cell));
  return width;
}

std::size_t width_of(const std::vector<table_column>& columns, std::size_t gap) {
  std::size_t width = 0;
  for (const auto& column : columns)
    width += width_of(column) + gap;
  return width == 0 ? 0 : width - gap;
}

/// Whether shortening the sorted `names` to `width` would make one of them look like the beginning
/// of another.
bool mixed_up(const std::vector<std::string>& names, std::size_t width) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (width_of(names[i]) <= width) continue;
    const auto head = head_of(names[i], width - cut_mark.size());
    if (i > 0 && names[i - 1].starts_with(head)) return true;
    if (i + 1 < names.size() && names[i + 1].starts_with(head)) return true;
  }
  return false;
}

/// The width below which the column's names may not be shortened; 0: no limit.
std::size_t least_width(const table_column& column) {
  if (!column.keeps_apart) return 0;
  auto names = column.cells;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  auto width = least_name;
  for (const auto widest = width_of(column); width < widest && mixed_up(names, width);)
    ++width;
  return width;
}

/// Shortens names to `width` columns, but not below `least`, which has the least_width() of each
/// column.
void cut_names(std::vector<table_column>& columns, const std::vector<std::size_t>& least,
               std::size_t width) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].is_name)
      for (auto& cell : columns[i].cells)
        cell = shortened(cell, std::max({width, least[i], width_of(columns[i].title)}));
}

/// Shortens the longest names step by step until the table fits, down to `least_name` columns.
/// Returns whether it fits.
bool fit_names(std::vector<table_column>& columns, const std::vector<std::size_t>& least,
               std::size_t gap, std::size_t room) {
  std::size_t longest = 0;
  for (const auto& column : columns)
    if (column.is_name) longest = std::max(longest, width_of(column));
  for (; width_of(columns, gap) > room && longest > least_name; --longest)
    cut_names(columns, least, longest - 1);
  return width_of(columns, gap) <= room;
}

std::string line_of(const std::vector<table_column>& columns, std::size_t gap,
                    const std::string& (*text)(const table_column&, std::size_t), std::size_t row) {
  std::string line;
  for (const auto& column : columns) {
    const auto& cell = text(column, row);
    const std::string blank(width_of(column) - width_of(cell), ' ');
    if (!line.empty()) line.append(gap, ' ');
    line += column.is_name ? cell + blank : blank + cell;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

} // namespace

std::vector<std::string> fit_table(std::vector<table_column> columns, std::size_t room) {
  constexpr std::size_t wide_gap = 2;
  std::size_t gap = wide_gap;
  std::vector<std::string> left_out;
  auto whole = columns;
  std::vector<std::size_t> least;
  std::transform(columns.begin(), columns.end(), std::back_inserter(least), least_width);
  if (!fit_names(columns, least, gap, room)) {
    gap = 1;
    columns = whole;
    for (auto& column : columns) {
      if (!column.short_title.empty()) column.title = column.short_title;
      if (!column.short_cells.empty()) column.cells = column.short_cells;
    }
  }
  auto narrow = columns;
  while (!fit_names(columns, least, gap, room) && columns.size() > 1) {
    left_out.insert(left_out.begin(), columns.back().title);
    columns.pop_back();
  }
  // There is not even room for every column's least width, so that limit is dropped.
  cut_names(columns, std::vector<std::size_t>(columns.size()), room);
  std::vector<std::string> lines;
  lines.push_back(line_of(
      columns, gap,
      [](const table_column& column, std::size_t) -> const std::string& { return column.title; },
      0));
  for (std::size_t row = 0; !columns.empty() && row < columns.front().cells.size(); ++row)
    lines.push_back(line_of(
        columns, gap,
        [](const table_column& column, std::size_t i) -> const std::string& {
          return column.cells[i];
        },
        row));
  if (left_out.empty()) return lines;
  cut_names(narrow, least, least_name);
  std::string note = "a terminal of " + std::to_string(width_of(narrow, gap)) + " columns shows ";
  for (std::size_t i = 0; i < left_out.size(); ++i)
    note += (i == 0 ? "" : ", ") + left_out[i];
  for (auto& line : wrap_line(note + " too", room))
    lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> wrap_line(const std::string& text, std::size_t room) {
  constexpr std::size_t indent = 2;
  room = std::max(room, indent + 1);
  std::vector<std::string> lines;
  std::string_view rest = text;
  while (width_of(rest) > room - (lines.empty() ? 0 : indent)) {
    auto head = head_of(rest, room - (lines.empty() ? 0 : indent));
    const auto space = rest.substr(0, head.size() + 1).rfind(' ');
    if (space != rest.npos && space > 0) head = rest.substr(0, space);
    lines.push_back(std::string(lines.empty() ? 0 : indent, ' ') + std::string(head));
    rest.remove_prefix(head.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  if (!rest.empty() || lines.empty())
    lines.push_back(std::string(lines.empty() ? 0 : indent, ' ') + std::string(rest));
  return lines;
}

} // namespace twill::tools
