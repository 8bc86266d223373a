// `twill-bench null`: the null server as a program.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

void add_null_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
