#include "actors/offload/block_run.hpp"

#include <string>

#include "actors/offload/fused_run.hpp"
#include "actors/offload/square_walk.hpp"

namespace twill::actors {

result<block_report> run_block(gpu::device& dev, models::decoder& decoder,
                               const models::decoder_options& loaded,
                               const std::vector<block_prompt>& prompts,
                               const block_options& options) {
  decoder.record_to(options.timeline);
  if (options.mode == block_mode::fused && options.kv.device < 100)
    return failure{errc::executor_failed,
                   std::string("a fused run must have all KV on the device")};
  if (options.mode == block_mode::fused && options.hidden.device < 100)
    return failure{errc::executor_failed,
                   std::string("a fused run must have all hidden states on the device")};
  if (options.mode == block_mode::fused) return run_fused(dev, decoder, loaded, prompts, options);
  square_walk walk(dev, decoder, loaded, prompts, options);
  if (auto ready = walk.prepare(needs_of(prompts, options, loaded.block_tokens)); !ready.ok())
    return ready.error();
  return walk.run();
}

} // namespace twill::actors
