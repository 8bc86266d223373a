// load_run: one load against one server from end to end: finds the model, makes the prompts, warms
// up, drives, and computes the figures. `serve`, `sweep`, `campaign` and `versus` all use it.
//
// Blocking, one thread. Throws std::runtime_error for a server that can't be reached or that lists
// no model. While requests run, SIGINT and SIGTERM end the run early, with the requests that are
// complete.
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
  scrape_log server_metrics;        ///< of the time of the run; empty: not asked for, or none there
  std::string date;                 ///< when it ended, YYYYMMDD-HHMMSS
};

class load_run {
public:
  load_run(serve_options options, progress_style progress);

  /// With the model's name as found.
  const serve_options& options() const { return options_; }
  const model_facts& model() const { return facts_; }

  /// Tries one request until it succeeds or --ready-check-timeout-sec is over, then throws.
  void check_ready();
  /// Sends the warm-ups. False: it was interrupted.
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
