#include "tools/twill-bench/serve_command.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tools/twill-bench/engine/arrivals.hpp"
#include "tools/twill-bench/engine/control_client.hpp"
#include "tools/twill-bench/engine/report.hpp"
#include "tools/twill-bench/engine/run.hpp"
#include "tools/twill-bench/engine/watcher.hpp"
#include "tools/twill-bench/engine/workload.hpp"
#include "tools/twill-bench/serve_flags.hpp"

namespace twill::bench {
namespace {

/// Streams of the seed, so that warm-ups and measured prompts differ.
enum seed_stream : std::uint64_t { measured = 1, warm_up = 2, ready_check = 3 };

void check(const serve_options& o) {
  for (const auto& [metric, bound] : o.goodput_ms)
    if (metric != "ttft" && metric != "tpot" && metric != "e2el")
      throw std::invalid_argument("--goodput must name ttft, tpot or e2el, got " + metric);
  if (o.dataset == "sharegpt" && o.dataset_path.empty() && o.prompt.empty())
    throw std::invalid_argument("--dataset-name sharegpt needs --dataset-path");
}

/// Waits for /v1/models; without --ready-check-timeout-sec it is asked once.
model_facts find_model(control_client& client, const serve_options& options) {
  const auto until = clock::now() + options.ready_timeout;
  reply answer = client.get("/v1/models");
  while (!answer.ok() && clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    answer = client.get("/v1/models");
  }
  if (answer.status == 0)
    throw std::runtime_error("cannot reach " + options.base_url + ": " + answer.error);
  if (auto facts = read_models(answer.body, options.model)) return *facts;
  if (options.model.empty())
    throw std::runtime_error("the server lists no model (GET /v1/models: status " +
                             std::to_string(answer.status) + "); give --model");
  return {options.model, {}, {}};
}

class serve_run {
public:
  serve_run(serve_options& options, bool show_progress)
      : options_(options), show_(show_progress && isatty(STDERR_FILENO) == 1),
        client_(options.base_url, options.headers), facts_(find_model(client_, options)),
        tokens_(client_, facts_.id) {
    options_.model = facts_.id;
    dialect_ = make_protocol(options_);
    engine_ = std::make_unique<engine>(options_, *dialect_);
  }

  int run() {
    if (options_.ready_timeout.count() > 0) check_ready();
    random_source random(options_.seed);
    const workload load = prompts(options_.n_prompts, measured);
    const auto due_s = arrival_times_s(load.prompts.size(), options_.request_rate_per_s,
                                       options_.burstiness, random);
    if (options_.n_warmups > 0) {
      std::fprintf(stderr, "warming up with %zu requests\n", options_.n_warmups);
      const workload warm = prompts(options_.n_warmups, warm_up);
      drive(warm.prompts, std::vector<double>(warm.prompts.size(), 0.0));
    }
    announce();
    const run_outcome outcome = drive(load.prompts, due_s);
    return report(outcome, load.remarks);
  }

private:
  workload prompts(std::size_t n, seed_stream stream) {
    const workload_source source{options_, dialect_->takes_ids(), facts_, tokens_,
                                 [] { return false; }};
    return make_workload(source, n, stream);
  }

  run_outcome drive(const std::vector<prompt>& what, const std::vector<double>& due_s) {
    progress_counts counts;
    counts.total = what.size();
    watcher watching(counts, show_, [this] { engine_->stop(); });
    return engine_->run(what, due_s, options_.max_concurrency, counts);
  }

  void check_ready() {
    const auto until = clock::now() + options_.ready_timeout;
    const workload one = prompts(1, ready_check);
    for (;;) {
      const run_outcome tried = drive(one.prompts, {0.0});
      const record& seen = tried.records.front();
      if (seen.how == outcome::completed || seen.how == outcome::cancelled || tried.interrupted)
        return;
      if (clock::now() >= until)
        throw std::runtime_error("the test request failed: " + seen.error_kind + ": " + seen.error);
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }

  void announce() const {
    std::fprintf(stderr, "%s at %s, model %s: %zu requests", options_.backend.c_str(),
                 options_.base_url.c_str(), options_.model.c_str(), options_.n_prompts);
    if (std::isinf(options_.request_rate_per_s))
      std::fprintf(stderr, options_.max_concurrency > 0 ? ", closed loop" : ", all at once");
    else
      std::fprintf(stderr, ", %g/s, burstiness %g%s", options_.request_rate_per_s,
                   options_.burstiness, options_.burstiness == 1.0 ? " (Poisson)" : "");
    if (options_.max_concurrency > 0)
      std::fprintf(stderr, ", at most %zu in flight", options_.max_concurrency);
    std::fprintf(stderr, "\n");
  }

  int report(const run_outcome& outcome, const std::vector<std::string>& remarks) const {
    const serve_metrics metrics = compute_metrics(outcome, options_);
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    std::array<char, 32> date{};
    std::strftime(date.data(), date.size(), "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    const report_input input{options_, outcome, metrics, date.data()};
    std::fputs(report_table(input).c_str(), stdout);
    std::fflush(stdout);
    for (const auto& group : {remarks, report_remarks(input)})
      for (const std::string& line : group)
        std::fprintf(stderr, "%s\n", line.c_str());
    if (options_.save_result || options_.save_detailed) save(input);
    if (outcome.interrupted) return 130;
    return metrics.completed + metrics.cancelled > 0 ? 0 : 1;
  }

  void save(const report_input& input) const {
    namespace fs = std::filesystem;
    std::string name = options_.result_filename;
    if (name.empty()) {
      std::array<char, 64> load{};
      std::snprintf(load.data(), load.size(), "%gqps", options_.request_rate_per_s);
      name = (options_.label.empty() ? options_.backend : options_.label) + "-" + load.data();
      if (options_.max_concurrency > 0)
        name += "-concurrency" + std::to_string(options_.max_concurrency);
      name += "-" + fs::path(options_.model).filename().string() + "-" + input.date + ".json";
    }
    const fs::path path = fs::path(options_.result_dir) / name;
    if (path.has_parent_path()) fs::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file << report_json(input) << "\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
    std::fprintf(stderr, "saved %s\n", path.c_str());
  }

  serve_options& options_;
  bool show_;
  control_client client_;
  model_facts facts_;
  http_token_service tokens_;
  std::unique_ptr<protocol> dialect_;
  std::unique_ptr<engine> engine_;
};

} // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("serve", "One run: a closed or an open loop of requests");
  auto arguments = add_serve_flags(*command);
  command->callback([arguments, &exit_code] {
    check(arguments->options);
    exit_code = serve_run(arguments->options, arguments->show_progress).run();
  });
}

} // namespace twill::bench
