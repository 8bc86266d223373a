// model_shape: a model as the planner and FlexGen's sizes see it. Pure.
#pragma once

#include "actors/offload/packed_sizes.hpp"
#include "actors/policy/offload_model.hpp"
#include "gpu/tensor.hpp"
#include "models/spec.hpp"

namespace twill::actors {

/// Of dense 16-bit weights FlexGen's own count, of others what they take packed.
offload_model model_shape(const models::model_spec& spec, gpu::dtype kv_type,
                          const packed_sizes& packed);

} // namespace twill::actors
