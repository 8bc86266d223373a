// metric_aliases: publishes metric families under other names as well, for `metrics.compat`. The
// functions have no state, and any thread may call them.
#pragma once

#include <prometheus/metric_family.h>
#include <string_view>
#include <vector>

namespace twill::net {

/// The prefix of all metric names of this server.
inline constexpr std::string_view our_prefix = "twill_";

/// For each of our families that vLLM publishes too, adds a copy under vLLM's name.
void add_vllm_names(std::vector<prometheus::MetricFamily>& all);

/// Adds copies of our families under the names that twill 0.1 used.
void add_older_names(std::vector<prometheus::MetricFamily>& all);

} // namespace twill::net
