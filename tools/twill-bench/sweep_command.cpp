#include <cstdio>
#include <memory>
#include <string>

#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/protocols/body.hpp"
#include "tools/twill-bench/runs/load_runner.hpp"
#include "tools/twill-bench/runs/sweep_report.hpp"
#include "tools/twill-bench/runs/sweep_runner.hpp"
#include "tools/twill-bench/serve_flags.hpp"

namespace twill::bench {
namespace {

struct sweep_arguments {
  sweep_order order;
  std::string folder = "sweep";
  bool show_progress = true;
};

void add_grid_flags(CLI::App& command, sweep_arguments& all) {
  sweep_order& o = all.order;
  o.input_lengths = o.output_lengths = {128, 512, 1024, 2048};
  command
      .add_option("--input-lens", o.input_lengths,
                  "The prompt lengths of the grid in tokens (default: 128,512,1024,2048).")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command
      .add_option("--output-lens", o.output_lengths,
                  "The output lengths of the grid in tokens (default: 128,512,1024,2048).")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command
      .add_option(
          "--latency-prompts", o.setup.latency_requests,
          "The number of requests of the latency phase, which are sent one after the other.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--throughput-prompts", o.setup.throughput_requests,
                  "The number of requests of the throughput phase.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--throughput-concurrency", o.setup.throughput_concurrency,
                  "The most requests of the throughput phase in flight; 0 sends all at once.")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--num-warmups", o.base.n_warmups,
                  "The number of requests that warm the server up before the first phase.")
      ->capture_default_str();
  command.add_flag("!--no-ignore-eos", o.setup.ignore_eos,
                   "Lets a request end at an end-of-text token, before its full length.");
  command
      .add_option("--context-limit", o.setup.context_limit,
                  "The most tokens of prompt and output together; longer cells are skipped "
                  "(default: the server's max_model_len).")
      ->check(CLI::PositiveNumber);
}

void add_output_flags(CLI::App& command, sweep_arguments& all) {
  sweep_order& o = all.order;
  command
      .add_option("--output-dir", all.folder,
                  "The folder of the results. A sweep whose results it holds is continued.")
      ->capture_default_str();
  command.add_flag("--fresh", o.fresh, "Starts over, whatever the folder holds.");
  command.add_flag("!--keep-failed", o.retry_failed,
                   "Does not measure a phase again in which every request failed.");
  command.add_option("--title", o.setup.title, "The heading of the tables (default: the model).");
  command.add_option("--hardware", o.setup.hardware,
                     "What the server runs on, as the tables will say.");
  command.add_option("--server-name", o.setup.server,
                     "The server and its version, as the tables will say.");
  command.add_flag("!--no-progress", all.show_progress, "Shows no progress line.");
}

/// Sampling parameters and extra fields as they are sent in every request. A resumed sweep must
/// have the same ones.
std::string extras_of(const serve_options& options) {
  body_writer body;
  return body.sampling(options).finish();
}

int run(sweep_arguments arguments) {
  sweep_order& order = arguments.order;
  order.setup.seed = order.base.seed;
  order.setup.backend = order.base.backend;
  order.setup.request_extras = extras_of(order.base);
  order.state_path = arguments.folder + "/sweep.json";
  load_runner runner(arguments.show_progress);
  const sweep done = run_sweep(order, runner);
  const std::string about_png = write_sweep(arguments.folder, done);
  std::fputs(sweep_markdown(done, "svg").c_str(), stdout);
  std::fprintf(stderr, "%s\nsaved %s/sweep.{json,md,html,csv} and four charts\n", about_png.c_str(),
               arguments.folder.c_str());
  if (done.interrupted) return 130;
  for (const sweep_cell& cell : done.cells)
    for (const auto* phase : {&cell.latency, &cell.throughput})
      if (*phase && (*phase)->completed == 0) return 1;
  return 0;
}

} // namespace

void add_sweep_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "sweep", "Measures a server over a grid of lengths: the latency of single requests and the "
               "throughput at saturation. A sweep that was interrupted goes on where it stopped.");
  auto arguments = std::make_shared<sweep_arguments>();
  arguments->order.setup.latency_requests = 3;
  arguments->order.setup.throughput_requests = 64;
  arguments->order.base.n_warmups = 1;
  add_target_flags(*command, arguments->order.base);
  add_grid_flags(*command, *arguments);
  add_client_flags(*command, arguments->order.base);
  add_sampling_flags(*command, arguments->order.base);
  add_output_flags(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

} // namespace twill::bench
