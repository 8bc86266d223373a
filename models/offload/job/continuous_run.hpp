// continuous_run: runs an offline job as one ragged continuous batch, as the daemon's steps are:
// decodes first, then prompts in chunks, up to the most rows of a step. Threads and failures: see
// offload_job.hpp.
#pragma once

#include "models/offload/job/offload_job.hpp"

namespace twill::models::offload {

result<job_report> run_continuous(gpu::device& dev, decoder& decoder, const decoder_options& loaded,
                                  const std::vector<job_prompt>& prompts,
                                  const job_options& options);

} // namespace twill::models::offload
