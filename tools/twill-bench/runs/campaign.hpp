// campaign: measures a sweep (a grid of input and output lengths, sweep.hpp) of every model on
// every server of a plan (plan.hpp), one server at a time, and compares the results. Sweeps that
// are complete are not measured again, so the same command resumes a campaign.
//
// run_campaign() blocks. Only one thread at a time may call it. A server that does not start is
// reported and left out. FOLDER/MODEL/SERVER holds a sweep and the log of the server, FOLDER/MODEL
// the comparison.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/runs/load_runner.hpp"
#include "tools/twill-bench/runs/plan.hpp"

namespace twill::bench {

struct campaign_order {
  run_plan plan;
  /// Names of the models and servers to measure now; an empty list means all of them. Results that
  /// earlier runs left in the folder are compared, too.
  std::vector<std::string> models, servers;
  std::string folder;
};

struct campaign_result {
  bool interrupted = false;
  std::vector<std::string> remarks; ///< what went wrong, one line per problem
};

campaign_result run_campaign(const campaign_order& order, load_runner& runner);

} // namespace twill::bench
