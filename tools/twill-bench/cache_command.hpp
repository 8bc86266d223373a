// cache_command: `twill-bench returning` and `twill-bench shared-prefix`, what cached KV saves of
// the time to the first token.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-commands; their exit status lands in `exit_code` when one was chosen.
void add_cache_commands(CLI::App& app, int& exit_code);

} // namespace twill::bench
