#include "models/decoder/step_arrays.hpp"

#include <utility>

#include "config/base/assert.hpp"
#include "models/decoder/gpu_error.hpp"

namespace twill::models {

result<step_arrays> step_arrays::create(gpu::device& dev, const step_limits& limits) {
  const std::int64_t entries =
      4 * std::int64_t{limits.tokens} + 2 * std::int64_t{limits.sequences} + 1 +
      std::int64_t{limits.sequences} * limits.max_blocks * (limits.staged ? 2 : 1) +
      limits.logit_rows;
  auto memory =
      dev.allocate(static_cast<std::size_t>(entries) * sizeof(std::int32_t), "step description");
  if (!memory.ok()) return from_gpu(memory.error());
  step_arrays arrays;
  arrays.limits_ = limits;
  arrays.memory_ = std::move(memory).value();
  arrays.staged_.reserve(static_cast<std::size_t>(entries));
  return arrays;
}

const std::int32_t* step_arrays::stage(std::span<const std::int32_t> values) {
  const auto* at = static_cast<const std::int32_t*>(memory_.data()) + staged_.size();
  staged_.insert(staged_.end(), values.begin(), values.end());
  return at;
}

void step_arrays::set(gpu::device& dev, const step_batch& step) {
  check(step);
  staged_.clear();
  const std::size_t n_sequences = step.kv_lengths.size();
  tokens_ = stage(step.tokens);
  batch_.n_tokens = static_cast<std::int32_t>(step.tokens.size());
  batch_.n_sequences = static_cast<std::int32_t>(n_sequences);
  batch_.max_blocks = step.max_blocks;
  batch_.positions = stage(step.positions);
  batch_.first_token = stage(step.first_token);
  batch_.kv_lengths = stage(step.kv_lengths);
  batch_.block_table = stage(step.block_table);
  logit_rows_ = stage(step.logit_rows);
  staged_table_ = stage(step.staged_table);
  batch_.sequence_of = stage({});
  for (std::size_t s = 0; s < n_sequences; ++s)
    staged_.insert(staged_.end(),
                   static_cast<std::size_t>(step.first_token[s + 1] - step.first_token[s]),
                   static_cast<std::int32_t>(s));
  position_rows_ = stage({});
  if (limits_.position_offset > 0)
    for (const std::int32_t position : step.positions)
      staged_.push_back(position + limits_.position_offset);
  dev.upload(memory_.data(), staged_.data(), staged_.size() * sizeof(std::int32_t));
}

// A wrong index would corrupt another sequence's KV silently; checking costs far less than the
// step.
void step_arrays::check(const step_batch& step) const {
  const auto n_tokens = static_cast<std::int64_t>(step.tokens.size());
  const auto n_sequences = static_cast<std::int64_t>(step.kv_lengths.size());
  TWILL_ASSERT(n_tokens <= limits_.tokens, "a step has more tokens than max_step_tokens");
  TWILL_ASSERT(n_sequences <= limits_.sequences, "a step has more sequences than max_sequences");
  TWILL_ASSERT(static_cast<std::int64_t>(step.logit_rows.size()) <= limits_.logit_rows,
               "a step has more logit rows than max_logit_rows");
  TWILL_ASSERT(step.max_blocks >= 0 && step.max_blocks <= limits_.max_blocks,
               "a block table is wider than the context allows");
  TWILL_ASSERT(step.positions.size() == step.tokens.size(),
               "positions and tokens differ in length");
  TWILL_ASSERT(static_cast<std::int64_t>(step.first_token.size()) == n_sequences + 1 &&
                   step.first_token.front() == 0 && step.first_token.back() == n_tokens,
               "first_token must lead from 0 to n_tokens");
  TWILL_ASSERT(static_cast<std::int64_t>(step.block_table.size()) == n_sequences * step.max_blocks,
               "the block table's size must be n_sequences * max_blocks");
  TWILL_ASSERT(step.staged_table.empty() ||
                   (limits_.staged && step.staged_table.size() == step.block_table.size()),
               "a staged block table must be as large as the other");
  for (const std::int32_t id : step.tokens)
    TWILL_ASSERT(id >= 0 && id < limits_.vocab_size, "a token id is outside the vocabulary");
  for (const std::int32_t row : step.logit_rows)
    TWILL_ASSERT(row >= 0 && row < n_tokens, "a logit row is outside the step");
  for (std::int64_t s = 0; s < n_sequences; ++s) {
    const auto i = static_cast<std::size_t>(s);
    const std::int32_t length = step.kv_lengths[i];
    const std::int64_t used =
        (std::int64_t{length} + limits_.block_tokens - 1) / limits_.block_tokens;
    TWILL_ASSERT(length >= 0 && used <= step.max_blocks,
                 "a sequence is longer than its block table");
    for (std::int64_t b = 0; b < used; ++b) {
      const std::int32_t id = step.block_table[static_cast<std::size_t>(s * step.max_blocks + b)];
      TWILL_ASSERT(id >= 0 && id < limits_.n_blocks, "a block id is outside the KV arena");
    }
    TWILL_ASSERT(step.first_token[i] <= step.first_token[i + 1], "first_token must ascend");
    if (limits_.most_positions > 0)
      TWILL_ASSERT(length <= limits_.most_positions, "a sequence is longer than the positions");
    for (std::int32_t row = step.first_token[i]; row < step.first_token[i + 1]; ++row) {
      const std::int32_t position = step.positions[static_cast<std::size_t>(row)];
      TWILL_ASSERT(position >= 0 && position < length, "a position is outside its sequence");
    }
  }
}

} // namespace twill::models
