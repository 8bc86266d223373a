// layer_probe: measures how fast the model's own first layer runs on this device. The planner
// computes a plan's compute time from these measurements. They include every op of a layer, not
// only its matrix products.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/compute.hpp"
#include "models/errc.hpp"
#include "models/offload/plan/cost_inputs.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

/// Each measurement is repeated for this many seconds, and at least twice.
inline constexpr double probe_budget_s = 0.3;

/// Sets `device_flops`, `device_kv_bytes_per_s` and `layer` of `on` from the measured times of
/// three kinds of steps: a prompt, several decodes, and decodes with a long context, whose time is
/// compared with that of decodes with a short one. While it runs it needs device memory for one
/// layer and for 256 rows of activations. Call it on the device's thread.
result<nothing> probe_layer(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                            const compute_choice& types, const offload_model& shape,
                            double budget_s, machine_description& on);

} // namespace twill::models::offload
