// warm_up_step: a step like those of requests, for a device that is to run each kind once before
// requests come. Pure.
#pragma once

#include <cstdint>

#include "actors/executor/step_runner.hpp"

namespace twill::actors {

/// A prompt of `rows` tokens of id 0 in the first KV blocks, which nobody uses yet, and one draw
/// with `params`. The step refers to `params`.
executor_step warm_up_step(std::int32_t rows, std::int32_t block_tokens,
                           const config::sampling_params& params);

} // namespace twill::actors
