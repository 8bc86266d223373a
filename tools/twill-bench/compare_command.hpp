// compare_command: `twill-bench compare`, result files side by side.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-command; its exit status lands in `exit_code` when it was chosen.
void add_compare_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
