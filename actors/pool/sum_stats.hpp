// Sums of counters over engines. Pure.
#pragma once

#include "actors/port/engine_port.hpp"

namespace twill::actors {

/// Adds counters and gauges; `state` and the block size stay, unless they were not set.
void add_stats(engine_stats& to, const engine_stats& from);

/// Takes away the gauges, which are meaningless once the engine is gone; counters stay.
void forget_gauges(engine_stats& of);

} // namespace twill::actors
