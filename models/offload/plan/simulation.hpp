// simulation: simulates a plan task by task on six resources (device, host, copies in both
// directions, disk reads and disk writes), each of which does one thing at a time. Pure; its time
// and memory are proportional to the number of tasks.
//
// The simulation covers dependencies that the closed formula (cost_model) leaves out: a layer must
// have arrived before it is used, a staging buffer must be free before the next layer may come, KV
// must be stored before it is loaded, and a pipeline must fill and drain. The fetch of a layer is
// cut into parts that are placed between the loads of the tasks that run at the same time.
// Transfers of activations occupy resources, but no task waits for them.
#pragma once

#include <cstddef>
#include <vector>

#include "models/offload/plan/cost_model.hpp"
#include "models/offload/plan/timeline.hpp"

namespace twill::models::offload {

struct simulation_result {
  double total_s = 0;
  double tokens_per_s = 0;
  resource_seconds busy;
  std::vector<timeline_span> spans; ///< the first `max_spans`, in order of their issue
};

simulation_result simulate(const offload_model& model, const machine_description& machine,
                           const offload_policy& policy, const offload_workload& work,
                           std::size_t max_spans = 0);

} // namespace twill::models::offload
