#include "tools/twill-bench/engine/load_run.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tools/twill-bench/engine/api_key.hpp"
#include "tools/twill-bench/engine/arrivals.hpp"
#include "tools/twill-bench/engine/conversation.hpp"
#include "tools/twill-bench/engine/descriptors.hpp"
#include "tools/twill-bench/engine/held_signals.hpp"
#include "tools/twill-bench/engine/text.hpp"

namespace twill::bench {
namespace {

serve_options with_key(serve_options options) {
  options.headers = with_api_key(std::move(options.headers), options.api_key);
  return options;
}

/// Asks for /v1/models until the model is listed or --ready-check-timeout-sec has passed; without
/// that flag it asks once.
model_facts find_model(control_client& client, const serve_options& options) {
  const auto until = clock::now() + options.ready_timeout;
  for (;;) {
    const reply answer = client.get("/v1/models");
    if (auto facts = read_models(answer.body, options.model)) return *facts;
    // Some servers let every key generate tokens, but only some keys list the models.
    if (answer.status == 401 || (answer.status == 403 && options.model.empty()))
      throw std::runtime_error(key_advice(options, answer.status, error_text(answer.body)));
    if (clock::now() < until) { // the server is not up yet, or still loads the model
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      continue;
    }
    if (answer.status == 0)
      throw std::runtime_error("cannot reach " + options.base_url + ": " + answer.error);
    if (!options.model.empty()) return {options.model, {}, {}};
    throw std::runtime_error("the server lists no model (GET /v1/models: status " +
                             std::to_string(answer.status) + "); give --model");
  }
}

} // namespace

load_run::load_run(serve_options options, progress_style progress)
    : options_(with_key(std::move(options))), progress_(std::move(progress)),
      client_(options_.base_url, options_.headers, options_.cacert),
      facts_(find_model(client_, options_)), tokens_(client_, facts_.id) {
  options_.model = facts_.id;
  raise_descriptor_limit(); // a socket for every request in flight
  dialect_ = make_protocol(options_);
  engine_ = std::make_unique<engine>(options_, *dialect_);
}

workload load_run::prompts(std::size_t n, std::uint64_t stream) {
  const workload_source source{options_, dialect_->takes_ids(), facts_, tokens_,
                               [] { return held_signals::pending(); }};
  return make_workload(source, n, stream);
}

run_outcome load_run::drive(const std::vector<prompt>& prompts, const std::vector<double>& due_s,
                            run_guard* guard) {
  progress_counts counts;
  counts.total = prompts.size();
  std::atomic<bool> stopped{false};
  const auto tick = [&](double elapsed_s) {
    if (counts.refused_status != 0) engine_->stop();
    if (guard == nullptr) return;
    const auto order = guard->ask(elapsed_s, counts);
    if (order == run_guard::order::close) engine_->close_intake();
    if (order == run_guard::order::stop) engine_->stop();
  };
  run_outcome out;
  {
    watcher watching(
        counts, progress_,
        [&] {
          stopped = true;
          engine_->stop();
        },
        tick);
    out = engine_->run(prompts, due_s, options_.max_concurrency, counts);
  }
  if (const int status = counts.refused_status; status != 0) {
    const auto one = std::find_if(out.records.begin(), out.records.end(),
                                  [&](const record& each) { return each.http_status == status; });
    throw std::runtime_error(key_advice(options_, status, one->error));
  }
  // The watcher (watcher.hpp) may have received SIGINT or SIGTERM just after the last request
  // ended; that signal must not be lost.
  out.interrupted = stopped;
  if (guard) out.ended_early = guard->reason();
  return out;
}

void load_run::check_ready() {
  const auto until = clock::now() + options_.ready_timeout;
  const workload one = prompts(1, ready_check_prompts);
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

bool load_run::warm_up() {
  if (options_.n_warmups == 0) return true;
  const workload warm = prompts(options_.n_warmups, warm_up_prompts);
  return !drive(warm.prompts, std::vector<double>(warm.prompts.size(), 0.0)).interrupted;
}

/// The due time of each prompt. All turns of a conversation have the due time of its first turn.
std::vector<double> load_run::due_times(const workload& load) const {
  if (!load.due_s.empty()) return load.due_s;
  random_source random(options_.seed);
  const std::vector<std::size_t> starts = conversation_starts(load.prompts);
  const auto of_starts =
      options_.ramp.empty()
          ? arrival_times_s(starts.size(), options_.request_rate_per_s, options_.burstiness, random)
          : ramp_times_s(starts.size(),
                         {options_.ramp_start_per_s, options_.ramp_end_per_s,
                          options_.ramp == "exponential"},
                         options_.burstiness, random);
  std::vector<double> out(load.prompts.size(), 0.0);
  for (std::size_t c = 0; c < starts.size(); ++c)
    std::fill(out.begin() + std::ptrdiff_t(starts[c]), out.end(), of_starts[c]);
  return out;
}

load_result load_run::measure() {
  const workload load = prompts(options_.n_prompts, measured_prompts);
  const bool cut = held_signals::pending() && load.prompts.size() < options_.n_prompts;
  const std::vector<double> due_s = due_times(load);
  run_guard guard(options_, due_s);
  load_result out;
  {
    scraper server(options_);
    out.outcome = drive(load.prompts, due_s, &guard);
    out.server_metrics = server.finish();
  }
  // Prompts that were not even made count as not sent.
  if (cut) out.outcome.records.resize(options_.n_prompts);
  out.metrics = compute_metrics(out.outcome, options_);
  out.remarks = load.remarks;
  out.date = date_text();
  return out;
}

} // namespace twill::bench
