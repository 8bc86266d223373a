// warm_up_step: a step like those of requests, for a device that is to run each kind once before
// requests come. Pure.
#pragma once

#include <cstdint>

#include "actors/executor/step_runner.hpp"

namespace twill::actors {

/// `sequences` prompts of `rows` tokens of id 0 each, in the first KV blocks, which nobody uses
/// yet, and a draw for each with `params`, to which the step refers. The caller sees to it that
/// sequences * ceil(rows / block_tokens) is at most n_blocks.
executor_step warm_up_step(std::int32_t sequences, std::int32_t rows, std::int32_t block_tokens,
                           const config::sampling_params& params);

} // namespace twill::actors
