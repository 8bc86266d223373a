// layer_probe: measures how fast the model's own first layer runs on this device. A plan's compute
// time is made of these measurements, which include every op of a layer and not only its matrix
// products.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/compute.hpp"
#include "models/errc.hpp"
#include "models/offload/plan/cost_inputs.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

/// Seconds for which each measurement is repeated; at least two runs are made.
inline constexpr double probe_budget_s = 0.3;

/// Sets `device_flops`, `device_kv_bytes_per_s` and `layer` of `on` from the times of a prompt, of
/// several decodes at once, and of what a longer context adds. While it runs it takes the layer's
/// memory on the device and 256 rows of activations. Call it on the device's thread.
result<nothing> probe_layer(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                            const compute_choice& types, const offload_model& shape,
                            double budget_s, machine_description& on);

} // namespace twill::models::offload
