// twill-bench: a load generator, timers of kernels and disks, and accuracy tables. Each sub-command
// is in a file of its own. The load engine is the library twill_bench, the accuracy code the
// library twill_accuracy.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "config/base/standard_streams.hpp"
#include "tools/common/cli_pages.hpp"
#include "tools/common/cli_usage.hpp"
#include "tools/twill-bench/commands.hpp"

int main(int argc, char** argv) {
  twill::open_missing_standard_streams();
  CLI::App app{
      "Measures LLM servers, models and machines. The load generator takes the flags and writes "
      "the table and the keys of vLLM's bench serve. Flags without a command mean `serve`.",
      "twill-bench"};
  app.set_version_flag("--version", "twill-bench " TWILL_VERSION);
  app.require_subcommand(1);
  int exit_code = 0;
  twill::bench::add_serve_command(app, exit_code);
  twill::bench::add_campaign_command(app, exit_code);
  twill::bench::add_compare_command(app, exit_code);
  twill::bench::add_engine_command(app, exit_code);
  twill::bench::add_null_command(app, exit_code);
  twill::bench::add_plan_command(app, exit_code);
  twill::bench::add_sweep_command(app, exit_code);
  twill::bench::add_versus_command(app, exit_code);
  twill::bench::add_disk_command(app, exit_code);
  twill::bench::add_kernels_command(app, exit_code);
  twill::bench::add_accuracy_command(app, exit_code);

  if (twill::tools::print_pages(app, argc, argv)) return 0;
  // When the command line begins with a flag, the sub-command is `serve`.
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool bare_flag = !arguments.empty() && arguments.front().front() == '-' &&
                         arguments.front() != "-h" && arguments.front() != "--help" &&
                         arguments.front() != "--version";
  if (bare_flag) arguments.insert(arguments.begin(), "serve");
  if (const auto why = twill::tools::misspelt_command(app, arguments); !why.empty()) {
    std::fprintf(stderr, "twill-bench: %s\n", why.c_str());
    return 2;
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return twill::tools::explain_usage(app, error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "twill-bench: %s\n", error.what());
    return 1;
  }
  return exit_code;
}
