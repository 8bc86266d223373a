// warm_up_step: a step like those of requests, for a device that must run each kind of step once
// before requests come. The functions are pure.
#pragma once

#include <cstdint>

#include "actors/executor/step_runner.hpp"

namespace twill::actors {

/// Returns a step with `sequences` prompts of `rows` tokens of id 0 each, in the first KV blocks,
/// which must be unused, and with one draw for each prompt. The step refers to `params`. The caller
/// must ensure that sequences * ceil(rows / block_tokens) is at most n_blocks.
executor_step warm_up_step(std::int32_t sequences, std::int32_t rows, std::int32_t block_tokens,
                           const config::sampling_params& params);

} // namespace twill::actors
