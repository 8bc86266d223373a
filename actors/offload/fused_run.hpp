// fused_run: the same job as one ragged continuous batch, as the daemon's steps are: decodes first,
// then prompts in pieces, up to the rows of one pass. Threads and failures: see block_run.hpp.
#pragma once

#include "actors/offload/block_run.hpp"

namespace twill::actors {

result<block_report> run_fused(gpu::device& dev, models::decoder& decoder,
                               const models::decoder_options& loaded,
                               const std::vector<block_prompt>& prompts,
                               const block_options& options);

} // namespace twill::actors
