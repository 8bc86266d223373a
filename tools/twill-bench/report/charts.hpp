// charts: writes charts as SVG, and as PNG where a converter is installed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/twill-bench/report/svg_chart.hpp"

namespace twill::bench {

/// Writes NAME.svg for each chart, and NAME.png with rsvg-convert, inkscape or ImageMagick,
/// whichever is found on PATH first. Returns a line for the user that says which program made the
/// PNG files. Throws std::runtime_error for a file that can't be written.
std::string write_charts(const std::string& folder,
                         const std::vector<std::pair<std::string, chart>>& charts);

} // namespace twill::bench
