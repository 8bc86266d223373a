// `twill offload --timeline`: writes a timeline chart of a run, or of a simulated plan.
#pragma once

#include <span>
#include <string>

#include "models/offload/plan/timeline.hpp"
#include "models/offload/streams/span_recorder.hpp"

namespace twill::tools {

/// Draws what ran; time begins with the first span. Throws client_error if `file` cannot be
/// written.
void draw_run(const std::string& file, const std::string& title,
              const models::offload::span_recorder& recorded);

/// Draws a simulation; "simulated" is added to the title.
void draw_simulation(const std::string& file, const std::string& title,
                     std::span<const models::offload::timeline_span> spans);

} // namespace twill::tools
