// doubts: what a reader must know before trusting the figures of loads (figures.hpp). The reports
// of sweep and versus show it. The functions are pure.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/runs/figures.hpp"

namespace twill::bench {

/// Returns the sums of the counts in `all`, the highest client_cpu_share and the first error. The
/// other members are 0.
run_figures total_of(const std::vector<const run_figures*>& all);

/// What a reader must know before trusting figures with this total: failures, outputs of other
/// lengths than asked for, a client that was busy. `ignore_eos` says whether requests asked for
/// outputs of full length.
std::vector<std::string> doubts_about(const run_figures& total, bool ignore_eos);

/// Whether mean output lengths differ by over 2 %. Requests/s do not compare then, because shorter
/// replies do not show a faster server.
bool lengths_differ(double output_tokens, double other_output_tokens);

} // namespace twill::bench
