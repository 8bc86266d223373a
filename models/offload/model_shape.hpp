// model_shape: a model as the planner and FlexGen's sizes see it. Pure.
#pragma once

#include "gpu/tensor.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/plan/cost_inputs.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

/// Of dense 16-bit weights FlexGen's own count, of others what they take packed.
offload_model model_shape(const model_spec& spec, gpu::dtype kv_type, const packed_weights& packed);

} // namespace twill::models::offload
