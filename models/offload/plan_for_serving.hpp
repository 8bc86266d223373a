// plan_for_serving: plans how a daemon serves a model that does not fit on its device. It measures
// this machine, or takes the rates measured in an earlier run, and chooses values for the options
// that the configuration leaves open.
#pragma once

#include <cstdint>

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/compute.hpp"
#include "models/errc.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/machine/measured_machine.hpp"
#include "models/offload/plan/serving_plan.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

/// The memory that the plan may use.
struct serving_room {
  packed_weights weights;
  std::int64_t device_bytes = 0;     ///< device memory for weights, KV and workspace
  std::int64_t host_bytes = 0;       ///< host memory for weights
  std::int64_t workspace_bytes = 0;  ///< the part of the workspace that does not depend on the
                                     ///< length of a step
  std::int64_t step_token_bytes = 0; ///< workspace of one row of a step
  std::int64_t least_kv_bytes = 0;
};

/// A plan with the machine rates that it was computed from.
struct planned_serving : serving_plan {
  machine_description machine;
  bool remembered = false; ///< the rates were measured in an earlier run
};

/// Makes the plan, and writes it and its projection to the log. This takes some seconds if the
/// machine must be measured, that is, if no measurement of the last week is stored or `when`
/// demands a new one. Fails if the machine cannot be measured or no plan fits. Call it on the
/// device's thread.
result<planned_serving> plan_for_serving(gpu::device& dev, const model_spec& spec,
                                         const checkpoint& weights, const compute_choice& types,
                                         const config::options& options, const serving_room& room,
                                         measuring when = measuring::if_unknown);

} // namespace twill::models::offload
