// contest: runs the loads of a plan on its servers by turns and keeps every round's figures.
//
// Blocking; from the main thread. Servers are ended before it returns or throws. SIGINT and SIGTERM
// end it after the request in flight, with the rounds that are complete. Throws std::runtime_error
// when a server does not start, is not ready in time, or is already running.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/versus/plan.hpp"

namespace twill::bench {

/// The figures of one server under one load in one round.
struct bout {
  double completed = 0, failed = 0, stopped_early = 0, context_limited = 0; ///< requests
  double output_tokens = 0; ///< mean per request, actual
  double request_throughput = 0, output_throughput = 0, total_throughput = 0;
  double median_ttft_ms = 0, p99_ttft_ms = 0, median_tpot_ms = 0, p99_itl_ms = 0;
  double median_e2el_ms = 0, ms_per_output_token = 0;
  double client_cpu_share = 0;
  std::string first_error;
};

/// The times of one start of a server.
struct start {
  double ready_s = 0;       ///< from exec to the first good answer at the ready URL
  double first_token_s = 0; ///< from exec to the end of a first request for one token
};

struct contest_result {
  std::vector<std::vector<std::vector<bout>>> bouts; // (n_loads, n_servers, n_rounds)
  std::vector<std::vector<start>> starts;            // (n_servers, n_starts)
  std::vector<std::string> remarks;
  bool interrupted = false;
};

struct contest_order {
  versus_plan plan;
  std::string log_folder; ///< NAME.log of each server
  bool show_progress = true;
};

contest_result run_contest(const contest_order& order);

} // namespace twill::bench
