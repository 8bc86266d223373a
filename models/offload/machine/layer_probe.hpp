// layer_probe: how fast the model's own first layer runs on this device: what a plan's compute is
// made of, with every op that a layer has, not its products alone.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/compute.hpp"
#include "models/errc.hpp"
#include "models/offload/plan/cost_inputs.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

/// How long each of the measurements is repeated, unless two runs take longer.
inline constexpr double probe_budget_s = 0.3;

/// Sets device_flops, device_kv_bytes_per_s and layer of `on`: the times of a prompt, of some
/// decodes at once, and of what a longer context adds. Takes the layer's memory on the device, and
/// 256 rows of activations, for as long as it runs. Device's thread.
result<nothing> probe_layer(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                            const compute_choice& types, const offload_model& shape,
                            double budget_s, machine_description& on);

} // namespace twill::models::offload
