// offload_timeline: `--timeline`: the picture of a run, or of a plan played through.
#pragma once

#include <span>
#include <string>

#include "models/offload/plan/timeline.hpp"
#include "models/offload/streams/span_recorder.hpp"

namespace twill::tools {

/// What ran; time begins with the first span. Throws client_error where `file` cannot be written.
void draw_run(const std::string& file, const std::string& title,
              const models::offload::span_recorder& recorded);

/// What would run; "simulated" is added to the title.
void draw_simulation(const std::string& file, const std::string& title,
                     std::span<const models::offload::timeline_span> spans);

} // namespace twill::tools
