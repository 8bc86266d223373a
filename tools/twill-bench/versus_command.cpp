#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/runs/versus.hpp"
#include "tools/twill-bench/runs/versus_report.hpp"

namespace twill::bench {
namespace {

struct versus_arguments {
  std::string plan_path, log_folder, json_path, markdown_path;
  int rounds = 0;
  bool show_progress = true;
};

int run(const versus_arguments& arguments) {
  versus_order order;
  order.plan = read_plan(arguments.plan_path, plan_kind::versus);
  if (arguments.rounds > 0) order.plan.rounds = arguments.rounds;
  order.log_folder = arguments.log_folder;
  if (order.log_folder.empty())
    order.log_folder = (std::filesystem::temp_directory_path() /
                        ("twill-bench-versus-" + std::to_string(getpid())))
                           .string();
  std::fprintf(stderr, "logs of the servers: %s\n", order.log_folder.c_str());
  load_runner runner(arguments.show_progress);
  const versus_result result = run_versus(order, runner);
  const std::string markdown = versus_markdown(order.plan, result);
  std::fputs(markdown.c_str(), stdout);
  if (!arguments.json_path.empty())
    write_file(arguments.json_path, versus_json(order.plan, result));
  if (!arguments.markdown_path.empty()) write_file(arguments.markdown_path, markdown);
  if (result.interrupted) return 130;
  for (const auto& load : result.rounds)
    for (const auto& server : load)
      for (const run_figures& each : server)
        if (each.completed == 0) return 1;
  return 0;
}

} // namespace

void add_versus_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "versus",
      "Starts the servers that a TOML file names and runs the same loads on them by turns.");
  auto arguments = std::make_shared<versus_arguments>();
  command
      ->add_option("plan", arguments->plan_path,
                   "The TOML file with [[server]] and [[load]] tables.")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--rounds", arguments->rounds, "The number of rounds, instead of the file's.")
      ->check(CLI::PositiveNumber);
  command->add_option(
      "--log-dir", arguments->log_folder,
      "The folder of the servers' logs (default: a new folder among temporary files).");
  command->add_option("--json", arguments->json_path,
                      "Writes the figures of every round to this JSON file.");
  command->add_option("--markdown", arguments->markdown_path, "Writes the tables to this file.");
  command->add_flag("!--no-progress", arguments->show_progress, "Shows no progress line.");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

} // namespace twill::bench
