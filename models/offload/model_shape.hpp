// model_shape: the description of a model that the planner and FlexGen's size formulas take. The
// functions are pure.
#pragma once

#include "gpu/tensor.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/plan/cost_inputs.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

/// The bytes of dense 16-bit weights are counted with FlexGen's formula, those of other weights by
/// their packed size.
offload_model model_shape(const model_spec& spec, gpu::dtype kv_type, const packed_weights& packed);

} // namespace twill::models::offload
