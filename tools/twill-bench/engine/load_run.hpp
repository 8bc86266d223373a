// load_run: runs one load against one server from beginning to end: it finds the model, makes the
// prompts, sends the warm-ups, runs the load and computes the figures. `serve`, `sweep`, `campaign`
// and `versus` all use it.
//
// Its calls block. Only one thread at a time may use an object. Throws std::runtime_error when the
// server can't be reached or lists no model. SIGINT and SIGTERM end a run early; its result then
// has the requests that were complete.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/twill-bench/engine/control_client.hpp"
#include "tools/twill-bench/engine/metrics.hpp"
#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/engine/run.hpp"
#include "tools/twill-bench/engine/run_guard.hpp"
#include "tools/twill-bench/engine/scraper.hpp"
#include "tools/twill-bench/engine/token_service.hpp"
#include "tools/twill-bench/engine/watcher.hpp"
#include "tools/twill-bench/engine/workload.hpp"

namespace twill::bench {

struct load_result {
  run_outcome outcome;
  serve_metrics metrics;
  std::vector<std::string> remarks; ///< about the prompts' lengths
  /// Metrics scraped during the run. Empty when they were not asked for or the server has none.
  scrape_log server_metrics;
  std::string date; ///< time of the run's end, YYYYMMDD-HHMMSS
};

class load_run {
public:
  load_run(serve_options options, progress_style progress);

  /// The options, with the name of the model that was found.
  const serve_options& options() const { return options_; }
  const model_facts& model() const { return facts_; }

  /// Sends one request, again and again until it succeeds. Throws when it has not succeeded after
  /// --ready-check-timeout-sec.
  void check_ready();
  /// Sends the warm-up requests. Returns false when a signal interrupted them.
  bool warm_up();
  load_result measure();

private:
  workload prompts(std::size_t n, std::uint64_t stream);
  std::vector<double> due_times(const workload& load) const;
  run_outcome drive(const std::vector<prompt>& prompts, const std::vector<double>& due_s,
                    run_guard* guard = nullptr);

  serve_options options_;
  progress_style progress_;
  control_client client_;
  model_facts facts_;
  http_token_service tokens_;
  std::unique_ptr<protocol> dialect_;
  std::unique_ptr<engine> engine_;
};

} // namespace twill::bench
