// campaign plan: the TOML file of `twill-bench campaign`: a grid, the models, the servers. Plain
// data.
//
// read_campaign() throws std::runtime_error naming the file, the line and the key.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/sweep/runner.hpp"
#include "tools/twill-bench/versus/plan.hpp"

namespace twill::bench {

struct campaign_model {
  std::string name, title;
  /// A text for the shell, run before its first server: the model's, else the plan's. May be empty.
  std::string prepare;
  std::vector<name_value> environment; ///< for prepare and the servers
  sweep_order grid;
};

struct campaign_server {
  versus_server how;
  std::string title;               ///< server and version, for the tables
  std::vector<std::string> models; ///< the ones it runs; empty: all
};

struct campaign_plan {
  std::vector<campaign_model> models;
  std::vector<campaign_server> servers; ///< the first is what the others are compared with
  std::vector<std::string> references;  ///< published sweeps put beside them
};

campaign_plan read_campaign(const std::string& path);

} // namespace twill::bench
