#include "models/offload/job/offload_job.hpp"

#include <string>

#include "models/offload/job/continuous_run.hpp"
#include "models/offload/job/schedule_executor.hpp"

namespace twill::models::offload {

result<job_report> run_offload_job(gpu::device& dev, decoder& decoder,
                                   const decoder_options& loaded,
                                   const std::vector<job_prompt>& prompts,
                                   const job_options& options) {
  decoder.record_to(options.timeline);
  if (options.mode == job_mode::fused && options.kv.device < 100)
    return failure{errc::bad_option, std::string("a fused run must have all KV on the device")};
  if (options.mode == job_mode::fused && options.hidden.device < 100)
    return failure{errc::bad_option,
                   std::string("a fused run must have all hidden states on the device")};
  if (options.mode == job_mode::fused)
    return run_continuous(dev, decoder, loaded, prompts, options);
  schedule_executor walk(dev, decoder, loaded, prompts, options);
  if (auto ready = walk.prepare(needs_of(prompts, options, loaded.block_tokens)); !ready.ok())
    return ready.error();
  return walk.run();
}

} // namespace twill::models::offload
