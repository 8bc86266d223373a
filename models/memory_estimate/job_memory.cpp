#include "models/memory_estimate/job_memory.hpp"

#include <algorithm>

namespace twill::models {
namespace {

/// Returns the bytes of the activations of all micro-batches.
std::int64_t batches_bytes(const model_spec& spec, const decoder_options& options,
                           const std::vector<offload::job_prompt>& prompts,
                           const offload::job_options& run, const offload::job_needs& needs) {
  std::int64_t bytes =
      needs.prefill_chunks * estimate_activation_bytes(spec, options, run.step_tokens,
                                                       run.batch_size, run.batch_size) +
      run.n_batches *
          estimate_activation_bytes(spec, options, run.batch_size, run.batch_size, run.batch_size);
  if (run.hidden.device < 100)
    bytes += offload::hidden_stream::device_bytes(
                 offload::hidden_options_of(spec, prompts, run, needs)) -
             4 * spec.hidden_size *
                 (std::int64_t{needs.prefill_chunks} * run.step_tokens +
                  std::int64_t{run.n_batches} * run.batch_size);
  return bytes;
}

} // namespace

job_memory estimate_job_memory(const gpu::device& dev, const model_spec& spec,
                               const checkpoint& weights, const packed_weights& packed,
                               const decoder_options& options,
                               const std::vector<offload::job_prompt>& prompts,
                               const offload::job_options& run) {
  const offload::job_needs needs = offload::needs_of(prompts, run, options.block_tokens);
  job_memory memory;
  memory.weights = packed.small + (spec.normalised_head ? 4 * std::int64_t{spec.vocab_size} : 0);
  streamed_weights streamed;
  if (options.offload.streams_weights())
    streamed = estimate_streamed_weights(spec, weights, options);
  else
    memory.weights += packed.matrices();
  memory.weights += streamed.resident;
  memory.ring = streamed.ring + streamed.embedding_rows;
  // `images` are the bytes of the buffers for streamed KV, `batches` those of the activations of
  // all micro-batches. The job allocates both only after the model has been loaded, so loading may
  // use their memory.
  std::int64_t images = 0, batches = 0;
  if (!options.kv_staged.empty())
    images = offload::kv_stream::device_bytes(offload::kv_options_of(spec, options, prompts, run));
  if (run.mode != offload::job_mode::fused)
    batches = batches_bytes(spec, options, prompts, run, needs);
  memory.kv = decoder::block_bytes(spec, options) * options.n_blocks + images;
  memory.activations = estimate_step_bytes(dev.info(), spec, options) +
                       estimate_scratch_bytes(dev, spec, weights, options) + batches;
  memory.loading = std::max<std::int64_t>(0, streamed.head_rows - streamed.ring - images - batches);
  return memory;
}

} // namespace twill::models
