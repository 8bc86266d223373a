// micro_batches: divides the prompts of an offline job into micro-batches and derives the shape of
// their schedule. The functions are pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/offload/job/offload_job.hpp"
#include "models/offload/plan/block_schedule.hpp"

namespace twill::models::offload {

std::span<const job_prompt> batch_of(const std::vector<job_prompt>& prompts, std::int32_t batch,
                                     std::int32_t batch_size);

schedule_shape shape_of(const std::vector<job_prompt>& prompts, const job_options& options,
                        std::int32_t n_layers);

} // namespace twill::models::offload
