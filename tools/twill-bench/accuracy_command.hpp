// accuracy_command: `twill-bench accuracy`, compute and KV types against f32, token by token.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-command; its exit status lands in `exit_code` when it was chosen.
void add_accuracy_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
