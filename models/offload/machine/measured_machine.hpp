// What offloading is planned for: this machine, measured, or as it was measured before.
#pragma once

#include <string>

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/compute.hpp"
#include "models/errc.hpp"
#include "models/offload/plan/cost_inputs.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

struct measured_machine {
  machine_description on;
  bool remembered = false; ///< of an earlier run, see machine_cache.hpp
};

/// The model's first layer (layer_probe), copies, memory, and the disk under offload.dir, where a
/// file is written and read back: some seconds, unless this was measured before and `anew` is
/// false. A simulated link (device.link_gbps) counts as it is simulated. `dev` needs room for a
/// layer and its rows. Fails with their code where the device or the disk refuses. Call it on
/// the device's thread.
result<measured_machine> measure_machine(gpu::device& dev, const model_spec& spec,
                                         const checkpoint& weights, const compute_choice& types,
                                         const offload_model& shape, const config::options& options,
                                         bool anew);

} // namespace twill::models::offload
