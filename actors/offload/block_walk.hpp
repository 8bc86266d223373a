// What the files of a block run share: prompts as micro-batches, and their schedule's shape. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/offload/block_run.hpp"
#include "actors/policy/block_schedule.hpp"

namespace twill::actors {

std::span<const block_prompt> batch_of(const std::vector<block_prompt>& prompts, std::int32_t batch,
                                       std::int32_t batch_size);

schedule_shape shape_of(const std::vector<block_prompt>& prompts, const block_options& options,
                        std::int32_t n_layers);

} // namespace twill::actors
