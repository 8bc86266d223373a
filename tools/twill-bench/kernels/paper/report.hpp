// report: what `twill-bench kernels --paper` writes: a table for a reader, and JSON lines for
// programs.
#pragma once

#include <string>

namespace twill::bench::paper {

/// Prints the report to standard output. `json_path`: the file of the JSON lines; empty: none.
/// Throws std::runtime_error where it cannot be written.
void report(const std::string& json_path);

} // namespace twill::bench::paper
