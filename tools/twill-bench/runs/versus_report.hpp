// versus_report: reports the rounds of `versus` as medians and ratios. The functions are pure.
#pragma once

#include <string>

#include "tools/twill-bench/runs/plan.hpp"
#include "tools/twill-bench/runs/versus.hpp"

namespace twill::bench {

/// One Markdown table per load. In a round, every server runs the load once. For each metric the
/// table shows the median, least and most over the rounds, and how many times better the first
/// server is than each other server: the median, least and most of the ratios within each round. A
/// ratio above 1 means that the first server is better, for latencies too.
std::string versus_markdown(const run_plan& plan, const versus_result& result);

/// The figures of every round, as JSON.
std::string versus_json(const run_plan& plan, const versus_result& result);

} // namespace twill::bench
