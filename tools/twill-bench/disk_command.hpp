// disk_command: `twill-bench disk`, what a program that only reads gets from the disk tier's disk.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

/// Adds the sub-command; its exit status lands in `exit_code` when it was chosen.
void add_disk_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
