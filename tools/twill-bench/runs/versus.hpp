// versus: runs the loads of a plan on its servers by turns and keeps every round's figures.
//
// Blocking; from the main thread. Servers are ended before it returns or throws. SIGINT and SIGTERM
// end it after the request in flight, with the rounds that are complete. Throws std::runtime_error
// when a server does not start, is not ready in time, or is already running.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/runs/load_runner.hpp"
#include "tools/twill-bench/runs/plan.hpp"

namespace twill::bench {

/// The times of one start of a server.
struct server_start {
  double ready_s = 0;       ///< from exec to the first good answer at the ready URL
  double first_token_s = 0; ///< from exec to the end of a first request for one token
};

struct versus_result {
  std::vector<std::vector<std::vector<run_figures>>> rounds; // (n_loads, n_servers, n_rounds)
  std::vector<std::vector<server_start>> starts;             // (n_servers, n_starts)
  std::vector<std::string> remarks;
  bool interrupted = false;
};

struct versus_order {
  run_plan plan;
  std::string log_folder; ///< NAME.log of each server
};

versus_result run_versus(const versus_order& order, load_runner& runner);

} // namespace twill::bench
