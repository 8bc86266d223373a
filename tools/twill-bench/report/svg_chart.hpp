// svg_chart: a chart of lines or bars over named places as SVG text. Pure functions.
//
// Self-contained: no script, no font file, no outside reference. A missing value breaks its line.
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
  std::string subject;             ///< what all charts of a file are about; only SVG files say it
  std::string now;                 ///< beside the title on a page; empty: the x title
  bool bars = false;               ///< one series of counts, a bar for each
  std::vector<std::string> places; ///< on the x axis, evenly spaced
  std::vector<chart_series> series;
};

std::string svg_chart(const chart& of);

/// "<" and its like as entities.
std::string escape_markup(const std::string& text);

} // namespace twill::bench
