// plan_for_serving: a daemon's plan for a model that does not fit: this machine measured (or as it
// was measured before), the options that are open chosen.
#pragma once

#include <cstdint>

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/compute.hpp"
#include "models/errc.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/plan/serving_plan.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

/// Bytes that the caller knows.
struct serving_room {
  packed_weights weights;
  std::int64_t device_bytes = 0;     ///< for weights, KV and workspace
  std::int64_t host_bytes = 0;       ///< of the host tier
  std::int64_t workspace_bytes = 0;  ///< beside a step's rows
  std::int64_t step_token_bytes = 0; ///< of one row
  std::int64_t least_kv_bytes = 0;
};

/// Takes some seconds where the machine was not measured within a week; call it on the device's
/// thread. Tells the plan and its projection in the log. Fails with the failing part's code, in
/// words, where the machine cannot be measured or nothing fits.
result<serving_plan> plan_for_serving(gpu::device& dev, const model_spec& spec,
                                      const checkpoint& weights, const compute_choice& types,
                                      const config::options& options, const serving_room& room);

} // namespace twill::models::offload
