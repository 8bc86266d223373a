// plan: the TOML file of `twill-bench versus`: the servers, the loads and the number of rounds, as
// plain data.
//
// read_plan() throws std::runtime_error naming the file, the line and the key; an unknown key is an
// error.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/versus/child.hpp"

namespace twill::bench {

struct versus_server {
  std::string name;
  child_order order;
  std::string ready_url; ///< answers 200 once the server takes requests
  std::chrono::duration<double> ready_timeout{120};
  serve_options target; ///< address and protocol; the load is filled in later
};

struct versus_load {
  std::string name;
  serve_options load;     ///< lengths, concurrency, sampling
  int busy_processes = 0; ///< programs that keep cores busy meanwhile
};

struct versus_plan {
  int rounds = 5;
  bool restart = true; ///< every round starts the servers anew; else they all run from the start
  std::vector<versus_server> servers; ///< the others are compared with the first
  std::vector<versus_load> loads;
};

versus_plan read_plan(const std::string& path);

} // namespace twill::bench
