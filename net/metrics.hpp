// metrics_text: /metrics in Prometheus' text format. Any thread; reads one snapshot of the engine.
//
// Names are vLLM's suffixes and units under the prefix `twill:`, so that dashboards carry over.
#pragma once

#include <cstdint>
#include <string>

#include "actors/port/engine_port.hpp"

namespace twill::net {

/// Memory of this process that is in RAM.
std::int64_t resident_bytes();

std::string metrics_text(const actors::engine_port& engine, std::int64_t open_sockets);

/// What metrics_text() gives, and beside it what each tenant asked of each model. For
/// administrators alone.
std::string admin_metrics_text(const actors::engine_port& engine, std::int64_t open_sockets);

} // namespace twill::net
