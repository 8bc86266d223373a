// sweep_runner: measures the cells of a sweep (sweep.hpp) that are not measured yet. A cell is a
// pair of input and output length. It has two phases, latency and throughput, which run one after
// the other.
//
// run_sweep() blocks. Only one thread at a time may call it. The file is written after every phase,
// so no finished measurement is lost. A phase that Ctrl-C cuts short is not kept. Throws
// std::runtime_error when the server can't be reached.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

class load_runner;

struct sweep_order {
  /// Target, sampling and seed; the sweep sets lengths and load itself.
  serve_options base;
  std::vector<std::int32_t> input_lengths, output_lengths; // tokens
  std::string state_path;
  bool fresh = false;       ///< ignore the results in the file and measure everything
  bool retry_failed = true; ///< phases in which nothing succeeded are measured again
  /// The model and the context limit are read from the server when they are not given.
  sweep_setup setup;
};

/// Returns one cell for each pair of an input and an output length, with the input length as the
/// outer loop. Cells beyond the context limit are marked as skipped.
std::vector<sweep_cell> sweep_grid(const std::vector<std::int32_t>& input_lengths,
                                   const std::vector<std::int32_t>& output_lengths,
                                   std::int64_t context_limit);

sweep run_sweep(sweep_order order, load_runner& runner);

} // namespace twill::bench
