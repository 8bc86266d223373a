// serve_command: `twill-bench serve`, one measured run against a running server.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-command; its exit status lands in `exit_code` when it was chosen.
void add_serve_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
