#include "tools/twill-bench/serve_command.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/twill-bench/engine/load_run.hpp"
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
      throw std::invalid_argument("--goodput's bound must be > 0 ms, got " + metric + ":" + bound);
    if (metric != "ttft" && metric != "tpot" && metric != "e2el")
      throw std::invalid_argument("--goodput must name ttft, tpot or e2el, got " + metric);
  }
  if (o.dataset == "sharegpt" && o.dataset_path.empty() && o.prompt.empty())
    throw std::invalid_argument("--dataset-name sharegpt needs --dataset-path");
}

void announce(const serve_options& options) {
  std::fprintf(stderr, "%s at %s, model %s: %zu requests", options.backend.c_str(),
               options.base_url.c_str(), options.model.c_str(), options.n_prompts);
  if (std::isinf(options.request_rate_per_s)) {
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

int report(const load_run& run, const load_result& result, const std::string& html_path) {
  const serve_options& options = run.options();
  const report_input input{options, result.outcome, result.metrics, result.date};
  std::fputs(report_table(input).c_str(), stdout);
  std::fflush(stdout);
  std::vector<std::string> remarks = result.remarks;
  for (const std::string& line : report_remarks(input))
    remarks.push_back(line);
  for (const std::string& line : remarks)
    std::fprintf(stderr, "%s\n", line.c_str());
  if (!html_path.empty()) write_file(html_path, serve_page(input, remarks));
  if (options.save_result || options.save_detailed) save(input);
  if (result.outcome.interrupted) return 130;
  return result.metrics.completed + result.metrics.cancelled > 0 ? 0 : 1;
}

int serve(const serve_arguments& arguments) {
  check(arguments.options);
  load_run run(arguments.options, progress_style::on_terminal(arguments.show_progress));
  const serve_options& options = run.options();
  if (options.ready_timeout.count() > 0) run.check_ready();
  if (options.n_warmups > 0)
    std::fprintf(stderr, "warming up with %zu requests\n", options.n_warmups);
  run.warm_up();
  announce(options);
  return report(run, run.measure(), arguments.html_path);
}

} // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("serve", "One run: a closed or an open loop of requests");
  auto arguments = add_serve_flags(*command);
  command->callback([arguments, &exit_code] { exit_code = serve(*arguments); });
}

} // namespace twill::bench
