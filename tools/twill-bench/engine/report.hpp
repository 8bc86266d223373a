// report: writes a run as vLLM's table, as lines of remarks, and as JSON with vLLM's keys. The
// functions are pure.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/metrics.hpp"
#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/engine/repeats.hpp"
#include "tools/twill-bench/engine/run.hpp"

namespace twill::bench {

/// The data that a report is made from.
struct report_input {
  const serve_options& options;
  const run_outcome& run;
  const serve_metrics& metrics;
  std::string date; ///< YYYYMMDD-HHMMSS
  /// Figures of --repeats, whose middle run is then the run reported here.
  std::vector<repeated_figure> repeats;
};

/// The block that starts with "============ Serving Benchmark Result ============".
std::string report_table(const report_input& in);
/// What a reader must know before trusting the table: about lengths, how requests ended, errors,
/// and whether the client itself was too slow.
std::vector<std::string> report_remarks(const report_input& in);
/// The JSON text of the result file. It has lists with an entry per request only with
/// --save-detailed.
std::string report_json(const report_input& in);

} // namespace twill::bench
