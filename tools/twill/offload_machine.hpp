// What offloading is planned for: this machine, measured. Takes some seconds and blocks.
#pragma once

#include <string>

#include "actors/policy/offload_model.hpp"
#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/compute.hpp"
#include "models/spec.hpp"

namespace twill::tools {

/// Kernels at the model's shapes, copies, memory, and the disk under offload.dir, where a file is
/// written and read back. A simulated link (device.link_gbps) counts as it is simulated. Throws
/// client_error where the device or the disk refuses.
actors::machine_description measure_machine(gpu::device& dev, const models::model_spec& spec,
                                            const models::compute_choice& types,
                                            const config::options& options);

} // namespace twill::tools
