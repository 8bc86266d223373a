#include "tools/twill-bench/accuracy/forced_decoder.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace twill::bench {
namespace {

/// Number of rows in one step, so that their logits take about 32 MiB.
std::int32_t rows_per_step(std::int32_t vocab_size) {
  return std::clamp((8 << 20) / std::max(vocab_size, 1), 16, 256);
}

} // namespace

models::result<forced_decoder> forced_decoder::load(gpu::device& dev,
                                                    const models::model_spec& spec,
                                                    const models::checkpoint& weights,
                                                    const models::compute_choice& types,
                                                    std::int32_t longest_tokens) {
  forced_decoder t;
  t.dev_ = &dev;
  t.rows_per_step_ = rows_per_step(spec.vocab_size);
  models::decoder_options options;
  options.compute = types.compute;
  options.kv_type = types.kv_type;
  options.n_blocks = (longest_tokens + options.block_tokens - 1) / options.block_tokens;
  options.max_context_tokens = longest_tokens;
  options.max_step_tokens = t.rows_per_step_;
  options.max_sequences = 1;
  options.max_logit_rows = t.rows_per_step_;
  auto loaded = models::decoder::load(dev, spec, weights, options, {});
  if (!loaded.ok()) return loaded.error();
  t.decoder_ = std::move(loaded).value();
  t.block_tokens_ = options.block_tokens;
  t.blocks_.resize(static_cast<std::size_t>(options.n_blocks));
  std::iota(t.blocks_.begin(), t.blocks_.end(), 0);
  return t;
}

void forced_decoder::begin(const token_sequence& sequence) {
  sequence_ = &sequence;
  done_ = 0;
}

logit_chunk forced_decoder::next() {
  const auto length = static_cast<std::int32_t>(sequence_->ids.size());
  const std::int32_t n = std::min(length - done_, rows_per_step_);
  if (n <= 0) return {};
  const std::int32_t end = done_ + n;
  models::step_batch step;
  step.tokens.assign(sequence_->ids.begin() + done_, sequence_->ids.begin() + end);
  step.positions.resize(step.tokens.size());
  std::iota(step.positions.begin(), step.positions.end(), done_);
  step.first_token = {0, n};
  step.kv_lengths = {end};
  step.max_blocks = (end + block_tokens_ - 1) / block_tokens_;
  step.block_table.assign(blocks_.begin(), blocks_.begin() + step.max_blocks);
  step.logit_rows.resize(step.tokens.size());
  std::iota(step.logit_rows.begin(), step.logit_rows.end(), 0);
  step.prompt_lengths = {sequence_->prompt_length};

  // Cannot fail, because the weights are resident.
  const gpu::tensor_ref logits = decoder_->forward(step).value();
  const auto vocab_size = static_cast<std::size_t>(logits.row_size());
  logits_.resize(step.logit_rows.size() * vocab_size);
  dev_->fence();
  for (std::int64_t r = 0; r < n; ++r)
    dev_->download(logits_.data() + static_cast<std::size_t>(r) * vocab_size,
                   logits.as<float>() + r * logits.row_stride, vocab_size * sizeof(float));
  const logit_chunk chunk = {done_, logits.row_size(), logits_};
  done_ = end;
  return chunk;
}

std::string reason_to_refuse(const token_sequence& sequence, const models::model_spec& spec) {
  const std::size_t length = sequence.ids.size();
  if (length < 2) return "a sequence must have 2 tokens or more, got " + std::to_string(length);
  if (sequence.prompt_length < 1 || static_cast<std::size_t>(sequence.prompt_length) > length)
    return "a prompt must have 1 to " + std::to_string(length) + " tokens, got " +
           std::to_string(sequence.prompt_length);
  if (spec.most_positions > 0 && length > static_cast<std::size_t>(spec.most_positions))
    return "a sequence must have at most " + std::to_string(spec.most_positions) + " tokens, got " +
           std::to_string(length);
  for (const std::int32_t id : sequence.ids)
    if (id < 0 || id >= spec.vocab_size)
      return "a token id must be below " + std::to_string(spec.vocab_size) + ", got " +
             std::to_string(id);
  return {};
}

} // namespace twill::bench
