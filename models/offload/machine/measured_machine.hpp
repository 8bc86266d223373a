// measured_machine: the rates of this machine (compute, memory, copies, disk) from which an
// offloading plan is computed. They are measured now or taken from an earlier run.
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
  bool remembered = false; ///< the rates are those of an earlier run, see machine_cache.hpp
};

/// The key under which rates are stored in the cache: a line with everything that the rates depend
/// on.
std::string machine_key(const gpu::device_info& info, const model_spec& spec,
                        const compute_choice& types, const offload_model& shape,
                        const config::options& options);

/// When to measure the machine: only if no stored rates are known, always, or never. With `never`,
/// having no stored rates is an error.
enum class measuring { if_unknown, anew, never };

/// Measures the speed of the model's first layer (layer_probe.hpp), of copies, of memory, and of
/// the disk under `offload.dir`, where a file is written and read back. This takes some seconds,
/// unless the rates are stored from an earlier run and need not be measured anew. A link whose
/// speed is simulated (`device.link_gbps`) counts with its simulated speed. `dev` needs free memory
/// for one layer and for the activations of 256 rows. Fails with the error code of the device or
/// the disk. Call it on the device's thread.
result<measured_machine> measure_machine(gpu::device& dev, const model_spec& spec,
                                         const checkpoint& weights, const compute_choice& types,
                                         const offload_model& shape, const config::options& options,
                                         measuring when);

} // namespace twill::models::offload
