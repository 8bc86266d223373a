// sweep_runner: measures the cells of a sweep that are not done yet, one phase after the other.
//
// Blocking, one thread. The file is written after every phase, so nothing measured is lost. A phase
// cut short by Ctrl-C is not kept. Throws std::runtime_error when the server can't be reached.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

class load_runner;

struct sweep_order {
  serve_options base; ///< target, sampling, seed; lengths and load are the sweep's own
  std::vector<std::int32_t> input_lengths, output_lengths; // tokens
  std::string state_path;
  bool fresh = false;       ///< forget what the file holds
  bool retry_failed = true; ///< phases in which nothing succeeded are measured again
  sweep_setup setup;        ///< model and context limit are asked of the server when not given
};

/// All cells, input-major, those beyond the context limit marked as skipped.
std::vector<sweep_cell> sweep_grid(const std::vector<std::int32_t>& input_lengths,
                                   const std::vector<std::int32_t>& output_lengths,
                                   std::int64_t context_limit);

sweep run_sweep(sweep_order order, load_runner& runner);

} // namespace twill::bench
