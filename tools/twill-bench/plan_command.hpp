// plan_command: `twill-bench plan`, what the batcher takes to plan steps, without a model.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-command; its exit status lands in `exit_code` when it was chosen.
void add_plan_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
