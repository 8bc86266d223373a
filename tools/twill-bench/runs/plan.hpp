// plan: the TOML file of `versus` and of `campaign`, as plain data. Both have [[server]] tables;
// `versus` also has [[load]] tables; `campaign` has [[model]] tables and the grid of input and
// output lengths to measure.
//
// read_plan() throws std::runtime_error with the file, the line and the key. A key that the kind of
// plan does not have is an error.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/runs/child.hpp"
#include "tools/twill-bench/runs/sweep_runner.hpp"

namespace twill::bench {

enum class plan_kind { versus, campaign };

struct planned_server {
  std::string name;
  child_order order;
  std::string ready_url; ///< this URL gives status 200 once the server accepts requests
  std::chrono::duration<double> ready_timeout{120};
  serve_options target; ///< address and protocol only; see with_target()
  // Only used by campaign:
  std::string title;               ///< server and version, for the tables
  std::vector<std::string> models; ///< the models that this server runs; empty: all of them
};

struct planned_load {
  std::string name;
  serve_options load;     ///< lengths, concurrency, sampling
  int busy_processes = 0; ///< number of programs that keep cores busy during the load
};

struct planned_model {
  std::string name, title;
  /// A shell command that runs before the first server of the model starts. Where a [[model]] table
  /// has no command, the plan's own one is used. It may be empty.
  std::string prepare;
  std::vector<name_value> environment; ///< for `prepare` and for the servers
  sweep_order grid;
};

struct run_plan {
  std::vector<planned_server> servers; ///< the first one is compared with each other one
  // Only used by versus:
  int rounds = 5;
  /// True: each round starts the servers anew. False: the servers run during all rounds.
  bool restart = true;
  std::vector<planned_load> loads;
  // Only used by campaign:
  std::vector<planned_model> models;
  std::vector<std::string> references; ///< names of published sweeps to compare with
};

run_plan read_plan(const std::string& path, plan_kind kind);

/// `load`, to be sent to the address and in the protocol of `server`.
serve_options with_target(serve_options load, const planned_server& server);

} // namespace twill::bench
