#include "actors/offload/block_memory.hpp"

#include <algorithm>

namespace twill::actors {
namespace {

/// models/detail/workspace, in floats.
std::int64_t workspace_floats(const models::model_spec& s, std::int64_t n, std::int64_t r) {
  const std::int64_t either = std::max(n, r);
  const std::int64_t embedded = s.embedding_size == s.hidden_size ? 0 : s.embedding_size;
  return either * (s.hidden_size + embedded + (s.gated_mlp ? 3 : 1) * std::int64_t{s.mlp_size}) +
         n * (2 * s.q_size() + 2 * s.kv_size()) + r * (s.q_size() + s.vocab_size);
}

/// The small table that embedding rows pass through: models/offload/row_table.
std::int64_t embedding_rows_bytes(const models::model_spec& s, const offload_room& room) {
  const std::int64_t tables = s.tied_head ? 1 : 2;
  return room.weights.tables / tables * 64 * 16 / std::max(s.vocab_size, 1);
}

/// What ops prepare for a step: rows rounded for the widest product (gpu/ops/linear_host), with the
/// half more that scratch memory grows by.
std::int64_t scratch_bytes(const models::model_spec& s, const models::decoder_options& o) {
  const std::int64_t widest =
      std::max({std::int64_t{s.hidden_size}, std::int64_t{s.mlp_size}, s.q_size()});
  return o.compute == gpu::compute_type::f32 ? 0 : 3 * o.max_step_tokens * widest;
}

/// models/detail/activations and its step arrays, in words of four bytes.
std::int64_t activation_words(const models::model_spec& s, std::int64_t tokens,
                              std::int64_t sequences, std::int64_t rows, std::int64_t max_blocks) {
  return tokens * (s.hidden_size + s.rope.rotary_dim + 4) + rows * (s.hidden_size + 1) +
         sequences * (2 + max_blocks) + 1;
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
    memory.ring = least_device_bytes(room, options.offload.ring_slots) - room.weights.small -
                  4 * mib + embedding_rows_bytes(spec, room);
  const auto staged = std::count(options.kv_staged.begin(), options.kv_staged.end(), true);
  memory.kv = models::decoder::block_bytes(spec, options) * options.n_blocks *
              (spec.n_layers - staged) / spec.n_layers;
  if (staged > 0)
    memory.kv +=
        models::offload::kv_stream::buffer_bytes(kv_options_of(spec, options, prompts, run));
  const std::int64_t max_blocks = std::min<std::int64_t>(
      options.n_blocks,
      (options.max_context_tokens + options.block_tokens - 1) / options.block_tokens);
  std::int64_t words = workspace_floats(spec, options.max_step_tokens, options.max_logit_rows) +
                       activation_words(spec, options.max_step_tokens, options.max_sequences,
                                        options.max_logit_rows, max_blocks);
  if (run.mode != block_mode::fused)
    words += needs.prefill_pieces * activation_words(spec, run.step_tokens, run.batch_size,
                                                     run.batch_size, max_blocks) +
             run.n_batches *
                 activation_words(spec, run.batch_size, run.batch_size, run.batch_size, max_blocks);
  memory.activations = 4 * words + scratch_bytes(spec, options);
  return memory;
}

} // namespace twill::actors
