// timeline_svg: a picture of what was busy with which task, when. Pure, any thread.
//
// One row per resource that did anything, one bar per span, coloured by micro-batch; weights, which
// serve all micro-batches, are grey. Bars narrower than a pixel are merged into one as opaque as it
// is busy, so that a picture has at most as many bars per row as pixels, however many the spans.
#pragma once

#include <span>
#include <string>

#include "models/offload/plan/timeline.hpp"

namespace twill::tools {

struct timeline_picture {
  std::string title;     ///< says what ran, and "simulated" where it did not
  int plot_width = 1200; ///< pixels of the time axis, at least 100
};

/// The text of an SVG file; `spans` in any order.
std::string timeline_svg(std::span<const models::offload::timeline_span> spans,
                         const timeline_picture& picture);

} // namespace twill::tools
