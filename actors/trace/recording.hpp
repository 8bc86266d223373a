// recording: writes a scheduler_trace to the file that `scheduler.trace` names.
#pragma once

#include <memory>
#include <string>

#include "actors/trace/scheduler_trace.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// Begins a new stream. Returns null if the options name no file, or if the file cannot be written,
/// which is logged.
std::shared_ptr<scheduler_trace> begin_recording(const config::scheduler_options& options,
                                                 const std::string& model,
                                                 const batcher_limits& limits, bool has_tiers);

} // namespace twill::actors
