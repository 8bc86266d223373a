// `twill offload --plan`: measures this machine and chooses what the user left open.
#pragma once

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/spec.hpp"
#include "tools/twill/offload/flags.hpp"

namespace twill::tools {

/// Measures (some seconds, once a week), plans and prints the plan. Returns the flags with the
/// chosen values. Throws client_error.
offload_flags planned(offload_flags flags, gpu::device& dev, const models::model_spec& spec,
                      const models::checkpoint& weights, const config::options& options);

} // namespace twill::tools
