// A decoder with weights from one of the golden folders, loaded for an offline job.
#pragma once

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "models/offload/job/offload_job.hpp"
#include "tests/models/support/golden_folder.hpp"

namespace twill::test {

inline models::decoder_options options_for(const models::offload::job_needs& needs,
                                           gpu::dtype kv_type) {
  models::decoder_options o;
  o.kv_type = kv_type;
  o.block_tokens = 8;
  o.n_blocks = needs.n_blocks;
  o.max_step_tokens = needs.max_step_tokens;
  o.max_sequences = needs.max_sequences;
  o.max_logit_rows = needs.max_logit_rows;
  o.max_context_tokens = needs.max_context_tokens;
  return o;
}

struct loaded_job {
  models::decoder_options options;
  std::unique_ptr<models::decoder> decoder;
};

inline loaded_job load_for(const test::golden_folder& c,
                           const std::vector<models::offload::job_prompt>& prompts,
                           const models::offload::job_options& run,
                           const models::offload::offload_options& homes,
                           gpu::dtype kv_type = gpu::dtype::f32) {
  loaded_job l;
  l.options = options_for(models::offload::needs_of(prompts, run, 8), kv_type);
  l.options.offload = homes;
  if (run.kv.device < 100)
    l.options.kv_staged = models::offload::kv_stream::staged_layers(
        models::offload::kv_options_of(c.spec, l.options, prompts, run));
  auto loaded = models::decoder::load(test::shared_device(), c.spec, *c.weights, l.options, {});
  if (!loaded.ok()) throw std::runtime_error(loaded.detail());
  l.decoder = std::move(loaded).value();
  return l;
}

inline models::result<models::offload::job_report>
run_job(const loaded_job& l, const std::vector<models::offload::job_prompt>& prompts,
        const models::offload::job_options& run) {
  return models::offload::run_offload_job(shared_device(), *l.decoder, l.options, prompts, run);
}

} // namespace twill::test
