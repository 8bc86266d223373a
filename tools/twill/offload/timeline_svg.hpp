// timeline_svg: a picture of which resource was busy with which task, and when. Pure, any thread.
//
// Each resource that did anything has a row with one bar per span, coloured by micro-batch.
// Weights, which serve all micro-batches, are grey. Bars narrower than a pixel are merged into one
// whose opacity is the share of time that was busy, so that a row has at most as many bars as
// pixels.
#pragma once

#include <span>
#include <string>

#include "models/offload/plan/timeline.hpp"

namespace twill::tools {

struct timeline_picture {
  std::string title;     ///< says what ran, or that it was simulated
  int plot_width = 1200; ///< pixels of the time axis; at least 100
};

/// Returns the text of an SVG file. The spans may have any order.
std::string timeline_svg(std::span<const models::offload::timeline_span> spans,
                         const timeline_picture& picture);

} // namespace twill::tools
