// cells: the published sweeps of the seed models beside what the model on paper says of twill on
// the same card, an A100 with 40 GB.
#pragma once

#include "tools/twill-bench/kernels/json_lines.hpp"

namespace twill::bench::paper {

/// Prints a table to standard output, and a line of JSON for each cell.
void report_cells(json_lines& lines);

} // namespace twill::bench::paper
