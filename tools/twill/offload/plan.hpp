// plan: the work of `twill offload --plan`: measures this machine and chooses values for the
// options that the user has not set.
#pragma once

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/spec.hpp"
#include "tools/twill/offload/flags.hpp"

namespace twill::tools {

/// Measures the machine (for some seconds; a measurement is reused for a week), makes a plan and
/// prints it. Returns the flags with the chosen values. Throws client_error.
offload_flags planned(offload_flags flags, gpu::device& dev, const models::model_spec& spec,
                      const models::checkpoint& weights, const config::options& options);

} // namespace twill::tools
