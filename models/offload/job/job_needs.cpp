// Computes the sizes that an offline job needs its decoder to have, by simulating the job's
// schedule with the lengths of its sequences.
#include <algorithm>
#include <cstdint>

#include "models/kv_shape.hpp"
#include "models/offload/job/micro_batches.hpp"
#include "models/offload/job/offload_job.hpp"

namespace twill::models::offload {
namespace {

std::int32_t parts(std::int64_t whole, std::int64_t part) {
  return static_cast<std::int32_t>((whole + part - 1) / part);
}

struct batch_load {
  std::int32_t blocks = 0; ///< KV blocks of the micro-batch when step `token` is stored
  std::int32_t chunks = 0; ///< chunks of its prefill
};

batch_load load_of(std::span<const job_prompt> batch, std::int32_t token,
                   const job_options& options, std::int32_t block_tokens) {
  batch_load load;
  std::int64_t rows = 0;
  for (const job_prompt& p : batch) {
    const auto prompt = static_cast<std::int32_t>(p.ids.size());
    rows += prompt;
    if (token < p.max_new) load.blocks += parts(prompt + token, block_tokens);
  }
  load.chunks = token == 0 ? parts(rows, options.step_tokens) : 0;
  return load;
}

} // namespace

const char* name_of(job_mode mode) {
  switch (mode) {
  case job_mode::zigzag:
    return "zigzag";
  case job_mode::diagonal:
    return "diagonal";
  case job_mode::fused:
    break;
  }
  return "fused";
}

std::span<const job_prompt> batch_of(const std::vector<job_prompt>& prompts, std::int32_t batch,
                                     std::int32_t batch_size) {
  const auto first = static_cast<std::size_t>(batch) * static_cast<std::size_t>(batch_size);
  return std::span(prompts).subspan(
      first, std::min(prompts.size() - first, static_cast<std::size_t>(batch_size)));
}

schedule_shape shape_of(const std::vector<job_prompt>& prompts, const job_options& options,
                        std::int32_t n_layers) {
  schedule_shape shape;
  shape.order = options.mode == job_mode::diagonal ? search_order::diagonal : search_order::zigzag;
  shape.n_layers = n_layers;
  shape.max_alive = options.n_batches;
  shape.stagger = options.stagger;
  const std::int32_t n = parts(static_cast<std::int64_t>(prompts.size()), options.batch_size);
  for (std::int32_t b = 0; b < n; ++b) {
    std::int32_t longest = 1;
    for (const job_prompt& p : batch_of(prompts, b, options.batch_size))
      longest = std::max(longest, p.max_new);
    shape.n_steps.push_back(longest);
  }
  return shape;
}

std::int32_t step_tokens_for(const std::vector<job_prompt>& prompts, const job_options& options) {
  const bool fused = options.mode == job_mode::fused;
  std::int64_t most = 0, rows = 0, of_batch = 0;
  for (const job_prompt& p : prompts) {
    rows += static_cast<std::int64_t>(p.ids.size()) +
            (fused ? 1 : 0); // other sequences decode in the same step
    most = std::max(most, rows);
    if (fused || ++of_batch < options.batch_size) continue;
    rows = of_batch = 0;
  }
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(most, 1, options.step_tokens));
}

job_needs needs_of(const std::vector<job_prompt>& prompts, const job_options& options,
                   std::int32_t block_tokens) {
  job_needs needs;
  std::int32_t most_at_once = 0, longest_prompts = 0;
  for (const job_prompt& p : prompts) {
    const std::int32_t all = static_cast<std::int32_t>(p.ids.size()) + p.max_new;
    needs.max_context_tokens = std::max(needs.max_context_tokens, all);
  }
  const std::int64_t alive =
      std::min<std::int64_t>(static_cast<std::int64_t>(prompts.size()),
                             std::int64_t{options.n_batches} * options.batch_size);
  needs.max_logit_rows = static_cast<std::int32_t>(std::min<std::int64_t>(alive, 256));
  needs.max_step_tokens = std::max(options.step_tokens, needs.max_logit_rows);
  if (options.mode == job_mode::fused) {
    // In the worst case all sequences that are alive have their full length.
    std::vector<std::int32_t> blocks;
    for (const job_prompt& p : prompts)
      blocks.push_back(parts(static_cast<std::int64_t>(p.ids.size()) + p.max_new, block_tokens));
    std::sort(blocks.rbegin(), blocks.rend());
    for (std::int64_t i = 0; i < alive; ++i)
      needs.n_blocks += blocks[static_cast<std::size_t>(i)];
    needs.max_sequences = static_cast<std::int32_t>(alive);
    needs.max_logit_rows = needs.max_sequences;
    needs.max_step_tokens = std::max(options.step_tokens, needs.max_sequences);
    return needs;
  }
  // The simulated schedule has only one layer. That is enough to count the KV blocks and the
  // prefill chunks (of at most options.step_tokens rows each) of a round, because in each round a
  // micro-batch passes through all layers once.
  schedule_cursor cursor(shape_of(prompts, options, 1));
  std::int64_t round = 0;
  batch_load now;
  while (const auto task = cursor.next()) {
    if (cursor.rounds() != round) now = {};
    round = cursor.rounds();
    const batch_load load = load_of(batch_of(prompts, task->batch, options.batch_size), task->token,
                                    options, block_tokens);
    now.blocks += load.blocks;
    now.chunks += load.chunks;
    most_at_once = std::max(most_at_once, now.blocks);
    longest_prompts = std::max(longest_prompts, now.chunks);
    needs.chunks_per_batch = std::max(needs.chunks_per_batch, load.chunks);
  }
  needs.n_blocks = most_at_once;
  needs.prefill_chunks = longest_prompts;
  // Every sequence of a micro-batch may have a row in one chunk.
  needs.max_sequences = options.batch_size;
  needs.max_logit_rows = std::max(needs.max_logit_rows, options.batch_size);
  needs.max_step_tokens = std::max(needs.max_step_tokens, options.batch_size);
  return needs;
}

kv_stream_options kv_options_of(const model_spec& spec, const decoder_options& options,
                                const std::vector<job_prompt>& prompts, const job_options& run) {
  kv_stream_options kv;
  kv.kv = run.kv;
  kv.buffers = options.offload.kv_buffers;
  kv.four_bits = run.four_bit_kv;
  kv.attend_on_host = run.attend_on_host;
  // A simulated link needs real copies, which it can delay.
  kv.partial_blocks_travel =
      !gpu::device_memory_is_host() || options.offload.link_bytes_per_second > 0;
  kv.n_layers = spec.n_layers;
  kv.n_batches =
      std::min(run.n_batches, parts(static_cast<std::int64_t>(prompts.size()), run.batch_size));
  kv.sequences = run.batch_size;
  kv.shape = kv_shape(spec, options.kv_type, options.block_tokens);
  kv.shape.n_blocks = kv.sequences * parts(options.max_context_tokens, options.block_tokens);
  return kv;
}

hidden_options hidden_options_of(const model_spec& spec, const std::vector<job_prompt>& prompts,
                                 const job_options& run, const job_needs& needs) {
  hidden_options hidden;
  hidden.hidden = run.hidden;
  hidden.n_batches =
      std::min(run.n_batches, parts(static_cast<std::int64_t>(prompts.size()), run.batch_size));
  hidden.chunks = needs.chunks_per_batch;
  hidden.state_bytes = std::int64_t{std::max(run.step_tokens, run.batch_size)} * spec.hidden_size *
                       static_cast<std::int64_t>(sizeof(float));
  return hidden;
}

} // namespace twill::models::offload
