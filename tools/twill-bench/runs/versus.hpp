// versus: runs the loads of a plan (plan.hpp) on its servers in rounds and keeps the figures. In a
// round, every server in turn runs every load once.
//
// Its calls block; use it from the main thread. Servers are ended before it returns or throws.
// SIGINT and SIGTERM end it after the request in flight; the result then has the rounds that are
// complete. Throws std::runtime_error when a server does not start, is not ready in time, or was
// already running.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/runs/load_runner.hpp"
#include "tools/twill-bench/runs/plan.hpp"

namespace twill::bench {

/// The times that one start of a server took.
struct server_start {
  /// From exec to the first reply of the ready URL with status 200.
  double ready_s = 0;
  double first_token_s = 0; ///< from exec to the end of the first request, for one token
};

struct versus_result {
  std::vector<std::vector<std::vector<run_figures>>> rounds; // (n_loads, n_servers, n_rounds)
  std::vector<std::vector<server_start>> starts;             // (n_servers, n_starts)
  std::vector<std::string> remarks;
  bool interrupted = false;
};

struct versus_order {
  run_plan plan;
  std::string log_folder; ///< holds a file NAME.log for each server
};

versus_result run_versus(const versus_order& order, load_runner& runner);

} // namespace twill::bench
