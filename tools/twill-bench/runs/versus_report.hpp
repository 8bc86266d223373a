// versus_report: the rounds of `versus` as medians and ratios. Pure functions.
#pragma once

#include <string>

#include "tools/twill-bench/runs/plan.hpp"
#include "tools/twill-bench/runs/versus.hpp"

namespace twill::bench {

/// Per load a Markdown table: each metric's median with its least and most over the rounds, and by
/// how many times the first server is better than each other one: the median, least and most of the
/// ratios of each round. Above 1 is better, for latencies too.
std::string versus_markdown(const run_plan& plan, const versus_result& result);

/// The figures of every round, as JSON.
std::string versus_json(const run_plan& plan, const versus_result& result);

} // namespace twill::bench
