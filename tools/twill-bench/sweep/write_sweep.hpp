// write_sweep: a sweep's files: Markdown, CSV, page and charts.
#pragma once

#include <string>

#include "tools/twill-bench/sweep/sweep.hpp"

namespace twill::bench {

/// sweep.md, sweep.csv, sweep.html and four charts in `folder`; returns a remark about the PNG
/// files. Throws std::runtime_error for a file that can't be written.
std::string write_sweep(const std::string& folder, const sweep& of);

} // namespace twill::bench
