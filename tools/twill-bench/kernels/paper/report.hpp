// report: the output of `twill-bench kernels --paper`: a table for people, and JSON lines for
// programs.
#pragma once

#include "tools/twill-bench/kernels/json_lines.hpp"

namespace twill::bench::paper {

/// Prints the report to standard output.
void report(json_lines& lines);

} // namespace twill::bench::paper
