// engine_command: `twill-bench engine`, a model's speed in this process, without server or network.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-command; its exit status lands in `exit_code` when it was chosen.
void add_engine_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
