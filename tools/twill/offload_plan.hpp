// offload_plan: `twill offload --plan`: this machine measured, what the user left open chosen.
#pragma once

#include "actors/offload/packed_sizes.hpp"
#include "actors/policy/offload_model.hpp"
#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint.hpp"
#include "models/spec.hpp"
#include "tools/twill/offload_flags.hpp"

namespace twill::tools {

/// The model as planner and sizes see it: of dense 16-bit weights FlexGen's own count, of others
/// what they take packed.
actors::offload_model offload_shape(const models::model_spec& spec, gpu::dtype kv_type,
                                    const actors::packed_sizes& packed);

/// Measures (some seconds, once a week), plans and prints; the flags with what was chosen. Throws
/// client_error.
offload_flags planned(offload_flags flags, gpu::device& dev, const models::model_spec& spec,
                      const models::checkpoint& weights, const config::options& options);

} // namespace twill::tools
