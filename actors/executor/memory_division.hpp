// memory_division: divides the device's memory between weights, KV and workspace. It decides where
// weights are, and how much memory KV gets if not all weights fit. For a model that does not fit,
// models/offload/plan_for_serving.hpp makes a plan, unless the user has fixed the division.
//
// One thread (the executor's).
#pragma once

#include "actors/executor/decoder_sizing.hpp"
#include "models/memory_estimate/memory_estimate.hpp"

namespace twill::actors {

/// Sets `size.options.offload`, which says where the weights are. If weights are streamed, it may
/// also set the length of steps, and it sets in `kv` how much device memory everything but the KV
/// cache takes.
result<nothing> divide_memory(const model_on_device& load, models::kv_budget& kv,
                              decoder_size& size);

} // namespace twill::actors
