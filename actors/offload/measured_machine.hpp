// What offloading is planned for: this machine, measured, or as it was measured before.
#pragma once

#include <string>

#include "actors/policy/offload_model.hpp"
#include "actors/port/engine_port.hpp"
#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/compute.hpp"
#include "models/spec.hpp"

namespace twill::actors {

struct measured_machine {
  machine_description on;
  bool remembered = false; ///< of an earlier run, see machine_cache.hpp
};

/// The model's first layer (layer_probe), copies, memory, and the disk under offload.dir, where a
/// file is written and read back: some seconds, unless this was measured before and `anew` is
/// false. A simulated link (device.link_gbps) counts as it is simulated. `dev` needs room for a
/// layer and its rows. Fails with executor_failed where the device or the disk refuses. Call it on
/// the device's thread.
result<measured_machine> measure_machine(gpu::device& dev, const models::model_spec& spec,
                                         const models::checkpoint& weights,
                                         const models::compute_choice& types,
                                         const offload_model& shape, const config::options& options,
                                         bool anew);

} // namespace twill::actors
