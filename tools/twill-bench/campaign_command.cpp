#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/runs/campaign.hpp"

namespace twill::bench {
namespace {

struct campaign_arguments {
  std::string plan_path, folder;
  std::vector<std::string> models, servers;
  bool tiny = false, show_progress = true;
};

template <class Item, class NameOf>
void check_names(const std::vector<Item>& items, const std::vector<std::string>& names,
                 NameOf name_of, const std::string& flag) {
  for (const std::string& name : names)
    if (std::none_of(items.begin(), items.end(),
                     [&](const Item& item) { return name_of(item) == name; }))
      throw std::invalid_argument(flag + " must be a name in the plan, got " + name);
}

int run(const campaign_arguments& arguments) {
  campaign_order order;
  order.plan = read_plan(arguments.plan_path, plan_kind::campaign);
  order.folder = arguments.folder;
  order.models = arguments.models;
  order.servers = arguments.servers;
  check_names(
      order.plan.models, order.models, [](const auto& m) { return m.name; }, "--models");
  check_names(
      order.plan.servers, order.servers, [](const auto& s) { return s.name; }, "--servers");
  if (arguments.tiny)
    for (planned_model& model : order.plan.models) {
      model.grid.input_lengths = {8};
      model.grid.output_lengths = {2, 4};
      model.grid.setup.latency_requests = 1;
      model.grid.setup.throughput_requests = 2;
    }
  load_runner runner(arguments.show_progress);
  const campaign_result result = run_campaign(order, runner);
  for (const std::string& line : result.remarks)
    std::fprintf(stderr, "WARNING: %s\n", line.c_str());
  std::fprintf(stderr, "results are in %s\n", order.folder.c_str());
  if (result.interrupted) return 130;
  return result.remarks.empty() ? 0 : 1;
}

} // namespace

void add_campaign_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "campaign", "Runs sweeps of several models on several servers and compares them. A campaign "
                  "that was interrupted goes on where it stopped.");
  auto arguments = std::make_shared<campaign_arguments>();
  command
      ->add_option("plan", arguments->plan_path,
                   "The TOML file that describes the models and the servers.")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--output-dir", arguments->folder, "The folder of the results.")->required();
  command
      ->add_option("--models", arguments->models,
                   "Runs only the models with these names, comma-separated.")
      ->delimiter(',');
  command
      ->add_option("--servers", arguments->servers,
                   "Runs only the servers with these names, comma-separated.")
      ->delimiter(',');
  command->add_flag("--try", arguments->tiny,
                    "Runs a grid of two tiny cells, which shows whether everything starts.");
  command->add_flag("!--no-progress", arguments->show_progress, "Shows no progress line.");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

} // namespace twill::bench
