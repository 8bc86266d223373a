// kernels_command: `twill-bench kernels`, every op of gpu/ against the machine's measured limits.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-command; its exit status lands in `exit_code` when it was chosen.
void add_kernels_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
