// continuous_run: runs an offline job as one ragged continuous batch. Like a step of the daemon,
// each step takes the decodes first and then prompts in chunks, up to the most rows of a step.
// offload_job.hpp states the threads and the failures.
#pragma once

#include "models/offload/job/offload_job.hpp"

namespace twill::models::offload {

result<job_report> run_continuous(gpu::device& dev, decoder& decoder, const decoder_options& loaded,
                                  const std::vector<job_prompt>& prompts,
                                  const job_options& options);

} // namespace twill::models::offload
