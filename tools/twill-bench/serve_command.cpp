#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/engine/held_signals.hpp"
#include "tools/twill-bench/engine/load_run.hpp"
#include "tools/twill-bench/engine/repeats.hpp"
#include "tools/twill-bench/engine/report.hpp"
#include "tools/twill-bench/report/html.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/serve_flags.hpp"

namespace twill::bench {
namespace {

void check(const serve_options& o) {
  for (const auto& [metric, bound] : o.goodput_ms) {
    char* end = nullptr;
    if (!(std::strtod(bound.c_str(), &end) > 0) || *end != '\0')
      throw std::invalid_argument("each bound of --goodput must be > 0 ms, got " + metric + ":" +
                                  bound);
    if (metric != "ttft" && metric != "tpot" && metric != "e2el")
      throw std::invalid_argument("--goodput must name ttft, tpot or e2el, got " + metric);
  }
  if (o.dataset != "random" && o.dataset_path.empty() && o.prompt.empty())
    throw std::invalid_argument("--dataset-name " + o.dataset + " needs --dataset-path");
  if (o.n_turns > 1 && (o.dataset != "random" || !o.prompt.empty()))
    throw std::invalid_argument(
        "--num-turns must be 1 with --prompt or another --dataset-name than random");
  if (o.cancellation_percent + o.disconnect_percent > 100)
    throw std::invalid_argument("--request-cancellation-rate and --request-disconnect-rate must "
                                "make <= 100 percent together");
  if (!o.ramp.empty() && (o.ramp_start_per_s <= 0 || o.ramp_end_per_s <= 0))
    throw std::invalid_argument("--ramp-up-strategy needs --ramp-up-start-rps and "
                                "--ramp-up-end-rps");
  if (o.stop_over_saturation && !is_open_loop(o))
    throw std::invalid_argument(
        "--stop-over-saturation needs --request-rate: a closed loop cannot outrun "
        "its server");
}

void announce(const serve_options& options) {
  std::fprintf(stderr, "%s at %s, model %s: %zu requests", options.backend.c_str(),
               options.base_url.c_str(), options.model.c_str(), options.n_prompts);
  if (!options.ramp.empty()) {
    std::fprintf(stderr, ", %s ramp from %g/s to %g/s", options.ramp.c_str(),
                 options.ramp_start_per_s, options.ramp_end_per_s);
  } else if (options.dataset == "trace") {
    std::fprintf(stderr, ", as the trace has them");
  } else if (std::isinf(options.request_rate_per_s)) {
    std::fprintf(stderr, options.max_concurrency > 0 ? ", closed loop" : ", all at once");
  } else {
    std::fprintf(stderr, ", %g/s", options.request_rate_per_s);
    if (std::isinf(options.burstiness))
      std::fprintf(stderr, ", constant gaps");
    else
      std::fprintf(stderr, ", burstiness %g%s", options.burstiness,
                   options.burstiness == 1.0 ? " (Poisson)" : "");
  }
  if (options.max_concurrency > 0)
    std::fprintf(stderr, ", at most %zu in flight", options.max_concurrency);
  std::fprintf(stderr, "\n");
}

void save(const report_input& input) {
  namespace fs = std::filesystem;
  const serve_options& options = input.options;
  std::string name = options.result_filename;
  if (name.empty()) {
    std::array<char, 64> load{};
    std::snprintf(load.data(), load.size(), "%gqps", options.request_rate_per_s);
    name = (options.label.empty() ? options.backend : options.label) + "-" + load.data();
    if (options.max_concurrency > 0)
      name += "-concurrency" + std::to_string(options.max_concurrency);
    name += "-" + fs::path(options.model).filename().string() + "-" + input.date + ".json";
  }
  const fs::path path = fs::path(options.result_dir) / name;
  write_file(path.string(), report_json(input) + "\n");
  std::fprintf(stderr, "saved %s\n", path.c_str());
}

/// The results of all repeats of a load.
struct repeated_loads {
  std::vector<load_result> results; // (n_repeats)
  serve_options options;            ///< with the name of the model that was found

  bool interrupted() const { return !results.empty() && results.back().outcome.interrupted; }

  /// The run with the median output throughput, or the last run when that was interrupted.
  const load_result& shown() const {
    if (interrupted()) return results.back();
    std::vector<const load_result*> order;
    for (const load_result& each : results)
      order.push_back(&each);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return a->metrics.output_throughput < b->metrics.output_throughput;
    });
    return *order[(order.size() - 1) / 2];
  }
  std::vector<repeated_figure> figures() const {
    if (results.size() < 2) return {};
    std::vector<serve_metrics> all;
    for (const load_result& each : results)
      if (!each.outcome.interrupted) all.push_back(each.metrics);
    return over_repeats(all);
  }
};

int report(const repeated_loads& loads, const std::string& html_path) {
  const serve_options& options = loads.options;
  const load_result& result = loads.shown();
  const report_input input{options, result.outcome, result.metrics, result.date, loads.figures()};
  std::fputs(report_table(input).c_str(), stdout);
  std::fputs(repeats_table(input.repeats).c_str(), stdout);
  std::fflush(stdout);
  std::vector<std::string> remarks = result.remarks;
  for (const std::string& line : report_remarks(input))
    remarks.push_back(line);
  for (const std::string& line : remarks)
    std::fprintf(stderr, "%s\n", line.c_str());
  if (options.save_result || options.save_detailed) save(input);
  if (!html_path.empty()) write_file(html_path, serve_page(input, remarks, result.server_metrics));
  if (result.outcome.interrupted) return 130;
  return result.metrics.completed + result.metrics.cancelled > 0 ? 0 : 1;
}

int serve(serve_arguments arguments) {
  check(arguments.options);
  if (!arguments.html_path.empty() && !arguments.scrape_given)
    arguments.options.scrape_interval = std::chrono::seconds(1);
  std::optional<held_signals> held; // signals are blocked only once there are results to lose
  repeated_loads loads;
  for (std::size_t turn = 0; turn < arguments.options.n_repeats && !loads.interrupted(); ++turn) {
    serve_options options = arguments.options;
    options.seed += turn;
    load_run run(options, progress_style::on_terminal(arguments.show_progress));
    if (turn == 0) {
      loads.options = run.options();
      if (options.ready_timeout.count() > 0) run.check_ready();
      if (options.n_warmups > 0)
        std::fprintf(stderr, "warming up with %zu requests\n", options.n_warmups);
      run.warm_up();
      held.emplace();
      announce(run.options());
    }
    loads.results.push_back(run.measure());
    if (held->came_within(std::chrono::milliseconds(0)))
      loads.results.back().outcome.interrupted = true;
  }
  return report(loads, arguments.html_path);
}

} // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "serve", "Measures a server with one run of requests, as a closed loop or as an open loop.");
  auto arguments = add_serve_flags(*command);
  command->callback([arguments, &exit_code] { exit_code = serve(*arguments); });
}

} // namespace twill::bench
