// campaign: sweeps every model on every server of a plan, one server at a time, and puts them side
// by side. Sweeps that are complete are not measured again, so that giving the command again
// resumes it.
//
// Blocking, one thread. A server that does not start is reported and left out.
// FOLDER/MODEL/SERVER holds a sweep and the server's log, FOLDER/MODEL the comparison.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/runs/load_runner.hpp"
#include "tools/twill-bench/runs/plan.hpp"

namespace twill::bench {

struct campaign_order {
  run_plan plan;
  /// Names of the models to measure now; empty: all of them. Results that earlier runs left in the
  /// folder are compared too.
  std::vector<std::string> models, servers;
  std::string folder;
};

struct campaign_result {
  bool interrupted = false;
  std::vector<std::string> remarks; ///< what went wrong, one line each
};

campaign_result run_campaign(const campaign_order& order, load_runner& runner);

} // namespace twill::bench
