// sweep: a grid of input and output lengths, and what was measured in each cell. Plain data.
//
// As in the published sweeps (published_sweeps.hpp), every cell has two phases: latency at
// concurrency 1, and throughput with enough requests at once to saturate the server. Latencies per
// token are computed with actual lengths, never with the lengths asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/twill-bench/runs/figures.hpp"

namespace twill::bench {

struct sweep_cell {
  std::int32_t input_tokens = 0, output_tokens = 0; ///< lengths that were asked for
  std::string skipped; ///< why the cell was not measured; empty when it was
  std::optional<run_figures> latency, throughput; ///< absent: not measured yet

  bool done() const { return !skipped.empty() || (latency && throughput); }
};

/// The setup that all cells share. A folder holds the results of one setup; a sweep with another
/// setup cannot resume in it.
struct sweep_setup {
  std::string backend, model;
  std::uint64_t seed = 0;
  std::int64_t latency_requests = 0, throughput_requests = 0;
  std::int64_t throughput_concurrency = 0; ///< 0: all at once
  bool ignore_eos = true;
  std::string request_extras; ///< sampling parameters and other fields of every request, as text
  // Reports show the members below; resuming does not compare them.
  std::string title, server, hardware, date;
  std::int64_t context_limit = 0; ///< tokens; 0: unknown
};

struct sweep {
  sweep_setup setup;
  std::vector<sweep_cell> cells;
  bool interrupted = false;
};

/// A column of the published tables: the phase and the member of run_figures that it shows.
struct sweep_metric {
  /// Name and unit, as in the published tables.
  const char* heading;
  const char* name;
  const char* unit;
  const char* file; ///< file name of its chart, without extension
  bool from_throughput;
  bool more_is_better;
  double run_figures::*member;
};
const std::vector<sweep_metric>& sweep_metrics(); // (4)

/// The cell with these lengths; null when the sweep has none.
const sweep_cell* find_cell(const sweep& in, std::int32_t input_tokens, std::int32_t output_tokens);

/// The metric of a cell; absent when its phase was not measured or no request completed.
std::optional<double> value_of(const sweep_cell& cell, const sweep_metric& metric);
/// What tables show where value_of() is absent: "skipped", "failed" or "not run".
std::string absence_of(const sweep_cell& cell, const sweep_metric& metric);

} // namespace twill::bench
