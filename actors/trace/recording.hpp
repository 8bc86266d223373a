// recording: a scheduler_trace that is written to the file which `scheduler.trace` names.
#pragma once

#include <memory>
#include <string>

#include "actors/trace/scheduler_trace.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// Begins a new stream. Null where the options name no file, and where the file cannot be written,
/// which the log tells.
std::shared_ptr<scheduler_trace> begin_recording(const config::scheduler_options& options,
                                                 const std::string& model,
                                                 const batcher_limits& limits, bool has_tiers);

} // namespace twill::actors
