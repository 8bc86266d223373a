// Sums of counters over engines. The functions are pure.
#pragma once

#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::actors {

/// Adds counters and gauges. `state` and the block size are copied only if they were not set.
void add_stats(engine_stats& to, const engine_stats& from);

/// Adds the entries of an engine, each to the entry of its tenant and model.
void add_tenants(std::vector<tenant_stats>& to, const std::vector<tenant_stats>& from);

/// Clears the gauges, which are meaningless once the engine is gone; counters stay.
void forget_gauges(engine_stats& of);

} // namespace twill::actors
