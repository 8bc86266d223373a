// model_shape: a model as the planner and FlexGen's sizes see it. Pure.
#pragma once

#include "gpu/tensor.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/plan/cost_inputs.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

/// Dense 16-bit weights are counted as FlexGen counts them, others by their packed size.
offload_model model_shape(const model_spec& spec, gpu::dtype kv_type, const packed_weights& packed);

} // namespace twill::models::offload
