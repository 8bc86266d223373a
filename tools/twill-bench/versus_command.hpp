// versus_command: `twill-bench versus`, servers against each other under the same loads.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-command; its exit status lands in `exit_code` when it was chosen.
void add_versus_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
