// cells: compares the published sweeps of the seed models with the model on paper's prediction for
// twill on the same card, an A100 with 40 GB.
#pragma once

#include "tools/twill-bench/kernels/json_lines.hpp"

namespace twill::bench::paper {

/// Prints a table to standard output and writes a line of JSON for each cell.
void report_cells(json_lines& lines);

} // namespace twill::bench::paper
