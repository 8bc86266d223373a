// sweep_command: `twill-bench sweep`, a grid of lengths against a running server.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-command; its exit status lands in `exit_code` when it was chosen.
void add_sweep_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
