// commands: the sub-commands of `twill-bench`, one function for each. NAME_command.cpp defines
// add_NAME_command().
//
// Each function adds its sub-command to `app`. When the command line chooses that sub-command, it
// runs while `app` is parsed, and its exit status is written to `exit_code`, which must outlive
// the parsing. A sub-command that cannot go on throws a std::exception, which main() prints.
#pragma once

#include <CLI/CLI.hpp>

namespace twill::bench {

void add_accuracy_command(CLI::App& app, int& exit_code);
void add_campaign_command(CLI::App& app, int& exit_code);
void add_compare_command(CLI::App& app, int& exit_code);
void add_disk_command(CLI::App& app, int& exit_code);
void add_engine_command(CLI::App& app, int& exit_code);
void add_kernels_command(CLI::App& app, int& exit_code);
void add_null_command(CLI::App& app, int& exit_code);
void add_plan_command(CLI::App& app, int& exit_code);
void add_serve_command(CLI::App& app, int& exit_code);
void add_sweep_command(CLI::App& app, int& exit_code);
void add_versus_command(CLI::App& app, int& exit_code);

} // namespace twill::bench
