// `twill offload --timeline`: writes a timeline chart of a run, or of a simulated plan.
#pragma once

#include <span>
#include <string>

#include "models/offload/plan/timeline.hpp"
#include "models/offload/streams/span_recorder.hpp"

namespace twill::tools {

/// Draws the recorded run. Time 0 of the chart is the start of the first recorded span, that is, of
/// the first task. Throws client_error when `file` cannot be written.
void draw_run(const std::string& file, const std::string& title,
              const models::offload::span_recorder& recorded);

/// Draws a simulated run; "simulated" is added to the title.
void draw_simulation(const std::string& file, const std::string& title,
                     std::span<const models::offload::timeline_span> spans);

} // namespace twill::tools
