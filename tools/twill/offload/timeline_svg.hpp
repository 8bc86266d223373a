// timeline_svg: an SVG chart that shows when each resource was busy with which task. The functions
// are pure; any thread may call them.
//
// A span is the time that one task took on one resource. Each resource that did anything has a row
// with one bar per span, coloured by micro-batch. Transfers of weights serve all micro-batches, so
// their bars are grey. Bars narrower than a pixel are merged into one bar whose opacity is the busy
// share of the time, so that a row has at most as many bars as pixels.
#pragma once

#include <span>
#include <string>

#include "models/offload/plan/timeline.hpp"

namespace twill::tools {

struct timeline_layout {
  std::string title;     ///< says what ran, or that it was simulated
  int plot_width = 1200; ///< pixels of the time axis; at least 100
};

/// Returns the text of an SVG file. The spans may have any order.
std::string timeline_svg(std::span<const models::offload::timeline_span> spans,
                         const timeline_layout& layout);

} // namespace twill::tools
