// cells: compares published throughputs of other servers with the throughput that the model on
// paper (model.hpp) predicts for twill. Both are for the seed models (seed_layers.hpp) on the same
// card, an A100 with 40 GB. A cell is one pair of input and output length.
#pragma once

#include "tools/twill-bench/kernels/json_lines.hpp"

namespace twill::bench::paper {

/// Prints a table to standard output and writes a line of JSON for each cell.
void report_cells(json_lines& lines);

} // namespace twill::bench::paper
