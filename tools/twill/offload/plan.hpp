// offload_plan: `twill offload --plan`: this machine measured, what the user left open chosen.
#pragma once

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/spec.hpp"
#include "tools/twill/offload/flags.hpp"

namespace twill::tools {

/// Measures (some seconds, once a week), plans and prints; the flags with what was chosen. Throws
/// client_error.
offload_flags planned(offload_flags flags, gpu::device& dev, const models::model_spec& spec,
                      const models::checkpoint& weights, const config::options& options);

} // namespace twill::tools
