// recording: writes a scheduler_trace to the file that `scheduler.trace` names.
#pragma once

#include <memory>
#include <string>

#include "actors/batcher/batcher_observer.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// Begins to record one scheduler in the trace file. Returns an observer that records nothing if
/// the options name no file, or if the file cannot be written, which is logged.
std::shared_ptr<batcher_observer> begin_recording(const config::scheduler_options& options,
                                                  const std::string& model,
                                                  const batcher_limits& limits, bool has_tiers);

} // namespace twill::actors
