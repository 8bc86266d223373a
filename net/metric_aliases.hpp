// metric_aliases: other names for families of metrics, for `metrics.compat`. Without state; any
// thread.
#pragma once

#include <prometheus/metric_family.h>
#include <string_view>
#include <vector>

namespace twill::net {

/// What every name of ours begins with.
inline constexpr std::string_view our_prefix = "twill_";

/// Adds, beside our families, those that vLLM has the same figures of, under its names.
void add_vllm_names(std::vector<prometheus::MetricFamily>& all);

/// Adds our families under the names that twill 0.1 gave them.
void add_older_names(std::vector<prometheus::MetricFamily>& all);

} // namespace twill::net
