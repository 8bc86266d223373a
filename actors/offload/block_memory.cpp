#include "actors/offload/block_memory.hpp"

#include <algorithm>

#include "actors/offload/step_memory.hpp"

namespace twill::actors {
namespace {

/// The small table that embedding rows pass through: models/offload/row_table.
std::int64_t embedding_rows_bytes(const models::model_spec& s, const offload_room& room) {
  const std::int64_t tables = s.tied_head ? 1 : 2;
  return room.weights.tables / tables * 64 * 16 / std::max(s.vocab_size, 1);
}

} // namespace

block_memory memory_of(const models::model_spec& spec, const models::decoder_options& options,
                       const std::vector<block_prompt>& prompts, const block_options& run,
                       const offload_room& room) {
  const block_needs needs = needs_of(prompts, run, options.block_tokens);
  block_memory memory;
  const models::offload::shares& shares = options.offload.weights;
  memory.weights = room.weights.small + room.weights.weights() * shares.device / 100;
  if (options.offload.streams_weights())
    memory.ring = std::min(least_device_bytes(room, options.offload.ring_layers) -
                               room.weights.small - 4 * mib,
                           whole_ring_bytes(room, spec.tied_head) * (100 - shares.device) / 100) +
                  embedding_rows_bytes(spec, room);
  const auto staged = std::count(options.kv_staged.begin(), options.kv_staged.end(), true);
  memory.kv = models::decoder::block_bytes(spec, options) * options.n_blocks *
              (spec.n_layers - staged) / spec.n_layers;
  if (staged > 0)
    memory.kv +=
        models::offload::kv_stream::buffer_bytes(kv_options_of(spec, options, prompts, run));
  memory.activations = step_bytes(spec, options);
  if (run.mode != block_mode::fused) {
    const std::int64_t max_blocks = table_width(options);
    memory.activations +=
        needs.prefill_pieces *
            activation_bytes(spec, run.step_tokens, run.batch_size, run.batch_size, max_blocks) +
        run.n_batches *
            activation_bytes(spec, run.batch_size, run.batch_size, run.batch_size, max_blocks);
    if (run.hidden.device < 100)
      memory.activations += models::offload::hidden_stream::device_bytes(
                                hidden_options_of(spec, prompts, run, needs)) -
                            4 * spec.hidden_size *
                                (std::int64_t{needs.prefill_pieces} * run.step_tokens +
                                 std::int64_t{run.n_batches} * run.batch_size);
  }
  return memory;
}

} // namespace twill::actors
