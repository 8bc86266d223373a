// figures: the figures that are kept of one load on one server. `twill-bench sweep` keeps them for
// each measurement of a pair of input and output length (sweep.hpp), `twill-bench versus` for each
// repetition of a load (versus.hpp). Plain data, and a list of how files and tables show it.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/load_run.hpp"

namespace twill::bench {

/// Counts are doubles, too, so that one list of members serves to read and write all of them.
struct run_figures {
  double asked = 0, completed = 0, failed = 0; ///< requests
  /// Requests that a stop ended before the length asked for.
  double stopped_early = 0;
  /// Requests that the server cut below the length asked for.
  double context_limited = 0;
  /// Requests whose output length was counted here, because the server gave no usage.
  double counted_lengths = 0;
  double input_mismatches = 0;
  double concurrency = 0; ///< most requests in flight
  double duration_s = 0;
  double input_tokens = 0, output_tokens = 0; ///< actual means of the completed requests
  double requests_per_s = 0, output_tokens_per_s = 0;
  double total_tokens_per_s = 0;  ///< input and output
  double ms_per_token = 0;        ///< mean of latency / (input + output)
  double ms_per_output_token = 0; ///< mean of latency / output
  double mean_ttft_ms = 0, median_ttft_ms = 0, p99_ttft_ms = 0;
  double mean_tpot_ms = 0, median_tpot_ms = 0, p99_tpot_ms = 0;
  double mean_itl_ms = 0, median_itl_ms = 0, p99_itl_ms = 0;
  double mean_e2el_ms = 0, median_e2el_ms = 0, p99_e2el_ms = 0;
  double client_cpu_share = 0; ///< the busiest I/O thread's share of a core
  std::string first_error;     ///< kind and message of the first failure; may be empty
};

/// How files and tables show a member of run_figures.
struct figure_entry {
  const char* key; ///< its key in JSON files
  double run_figures::*member;
  const char* column; ///< its heading in a sweep's CSV; null: not a column there
  int digits;         ///< in CSV, after the decimal point
  const char* title;  ///< its heading in the tables of `versus`; null: not a row there
  bool more_is_better;
};

/// All members but first_error, in the sequence of the JSON keys and the CSV columns.
const std::vector<figure_entry>& all_figures();

/// `options` are the options of the run; the first of its percentiles must be the 99th.
run_figures figures_of(const load_result& result, const serve_options& options);

} // namespace twill::bench
