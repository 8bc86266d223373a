// memory_division: divides the device between weights, KV and workspace: where weights live, and
// how much KV gets where not all weights fit. A model that does not fit is planned for (see
// models/offload/plan_for_serving.hpp) unless the user has fixed the division.
//
// One thread (the executor's).
#pragma once

#include "actors/executor/decoder_sizing.hpp"
#include "models/memory_estimate/memory_estimate.hpp"

namespace twill::actors {

/// Decides `size.options.offload`. Where weights are streamed, it also sets the length of steps,
/// and `kv` afterwards counts what streaming takes of the device.
result<nothing> divide_memory(const model_on_device& load, models::kv_budget& kv,
                              decoder_size& size);

} // namespace twill::actors
