#include "actors/offload/block_memory.hpp"

#include <algorithm>

#include "actors/offload/step_memory.hpp"

namespace twill::actors {
namespace {

/// Activations of all micro-batches.
std::int64_t batches_bytes(const models::model_spec& spec, const models::decoder_options& options,
                           const std::vector<block_prompt>& prompts, const block_options& run,
                           const block_needs& needs) {
  const std::int64_t max_blocks = models::decoder::block_table_width(spec, options);
  std::int64_t bytes =
      needs.prefill_pieces *
          activation_bytes(spec, run.step_tokens, run.batch_size, run.batch_size, max_blocks) +
      run.n_batches *
          activation_bytes(spec, run.batch_size, run.batch_size, run.batch_size, max_blocks);
  if (run.hidden.device < 100)
    bytes +=
        models::offload::hidden_stream::device_bytes(hidden_options_of(spec, prompts, run, needs)) -
        4 * spec.hidden_size *
            (std::int64_t{needs.prefill_pieces} * run.step_tokens +
             std::int64_t{run.n_batches} * run.batch_size);
  return bytes;
}

} // namespace

block_memory memory_of(const gpu::device& dev, const models::model_spec& spec,
                       const models::checkpoint& weights, const packed_sizes& packed,
                       const models::decoder_options& options,
                       const std::vector<block_prompt>& prompts, const block_options& run) {
  const block_needs needs = needs_of(prompts, run, options.block_tokens);
  block_memory memory;
  memory.weights = packed.small + (spec.normalised_head ? 4 * std::int64_t{spec.vocab_size} : 0);
  models::streamed_memory streamed;
  if (options.offload.streams_weights())
    streamed = models::decoder::streamed_bytes(spec, weights, options);
  else
    memory.weights += packed.weights();
  memory.weights += streamed.homes;
  memory.ring = streamed.ring + streamed.rows;
  // Of the run: what comes when the model has been loaded.
  std::int64_t images = 0, batches = 0;
  if (!options.kv_staged.empty())
    images = models::offload::kv_stream::device_bytes(kv_options_of(spec, options, prompts, run));
  if (run.mode != block_mode::fused) batches = batches_bytes(spec, options, prompts, run, needs);
  memory.kv = models::decoder::block_bytes(spec, options) * options.n_blocks + images;
  memory.activations = step_bytes(spec, options) +
                       models::decoder::scratch_bytes(dev, spec, weights, options) + batches;
  memory.loading = std::max<std::int64_t>(0, streamed.head_rows - streamed.ring - images - batches);
  return memory;
}

} // namespace twill::actors
