#include "tools/twill-bench/runs/doubts.hpp"

#include <algorithm>
#include <cmath>

#include "tools/twill-bench/engine/text.hpp"

namespace twill::bench {

run_figures total_of(const std::vector<const run_figures*>& all) {
  run_figures out;
  for (const run_figures* each : all) {
    for (const auto count : {&run_figures::asked, &run_figures::completed, &run_figures::failed,
                             &run_figures::stopped_early, &run_figures::context_limited,
                             &run_figures::counted_lengths, &run_figures::input_mismatches})
      out.*count += each->*count;
    out.client_cpu_share = std::max(out.client_cpu_share, each->client_cpu_share);
    if (out.first_error.empty()) out.first_error = each->first_error;
  }
  return out;
}

std::vector<std::string> doubts_about(const run_figures& total, bool ignore_eos) {
  const std::string of_all = " of " + fixed(total.completed, 0) + " requests";
  const auto n = [&](double count) { return fixed(count, 0) + of_all; };
  std::vector<std::string> out;
  if (total.stopped_early > 0)
    out.push_back(ignore_eos
                      ? "ignore_eos was NOT honoured: " + n(total.stopped_early) +
                            " stopped early; requests/s do not compare with full-length runs."
                      : n(total.stopped_early) + " stopped before the length asked for.");
  if (total.context_limited > 0)
    out.push_back(n(total.context_limited) + " were cut below the length asked for.");
  if (total.failed > 0)
    out.push_back(fixed(total.failed, 0) + " requests failed" +
                  (total.first_error.empty() ? "." : "; the first error: " + total.first_error));
  if (total.counted_lengths > 0)
    out.push_back("The server gave no usage in " + n(total.counted_lengths) +
                  ": output lengths were counted from chunks.");
  if (total.input_mismatches > 0)
    out.push_back("The server counted another prompt length than was sent in " +
                  n(total.input_mismatches) + " (special or template tokens).");
  if (total.client_cpu_share > 0.8)
    out.push_back("The client was busy: an I/O thread used " +
                  fixed(total.client_cpu_share * 100, 0) + " % of a core.");
  return out;
}

bool lengths_differ(double output_tokens, double other_output_tokens) {
  return std::fabs(output_tokens - other_output_tokens) >
         0.02 * std::max(output_tokens, other_output_tokens);
}

} // namespace twill::bench
