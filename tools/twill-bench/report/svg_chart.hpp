// svg_chart: draws a chart of lines or bars as SVG text. The x axis consists of evenly spaced
// categories with names. The functions are pure.
//
// The SVG needs no script, font file or other file. A line has a gap where a value is missing.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace twill::bench {

struct chart_series {
  std::string name;
  std::vector<std::optional<double>> values; // (n_places)
};

struct chart {
  std::string title, x_title, y_title;
  std::string subject;             ///< what all charts of a file are about; only SVG files show it
  std::string now;                 ///< shown beside the title on a page; empty: x_title is shown
  bool bars = false;               ///< one series of counts, each drawn as a bar
  std::vector<std::string> places; ///< on the x axis, evenly spaced
  std::vector<chart_series> series;
};

std::string svg_chart(const chart& of);

/// Replaces "<" and the other special characters of markup by entities.
std::string escape_markup(const std::string& text);

} // namespace twill::bench
