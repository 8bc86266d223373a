#include "models/decoder/step_arrays.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "config/base/assert.hpp"
#include "gpu/rows/embedding.hpp"
#include "models/decoder/gpu_error.hpp"

namespace twill::models {

namespace {

constexpr std::int64_t line_entries = 16; ///< arrays begin at lines of 64 bytes

std::int64_t whole_lines(std::int64_t entries) {
  return (entries + line_entries - 1) / line_entries * line_entries;
}

void put(std::int32_t* to, const std::vector<std::int32_t>& values) {
  std::copy(values.begin(), values.end(), to);
}

} // namespace

step_arrays::places::places(const step_limits& limits) {
  const auto place = [this](std::int64_t entries) {
    const std::int64_t at = end;
    end += whole_lines(entries);
    return at;
  };
  tokens = place(limits.tokens);
  positions = place(limits.tokens);
  sequence_of = place(limits.tokens);
  position_rows = place(limits.position_offset > 0 ? limits.tokens : 0);
  fed_from = place(limits.tokens);
  first_token = place(limits.sequences + 1);
  kv_lengths = place(limits.sequences);
  logit_rows = place(limits.logit_rows);
  tables = place(std::int64_t{limits.sequences} * limits.max_blocks * (limits.staged ? 2 : 1));
}

std::int64_t step_arrays::device_bytes(const step_limits& limits) {
  return places(limits).end * static_cast<std::int64_t>(sizeof(std::int32_t)) +
         limits.carried_bytes;
}

result<step_arrays> step_arrays::create(gpu::device& dev, const step_limits& limits) {
  step_arrays arrays;
  arrays.limits_ = limits;
  arrays.places_ = places(limits);
  const auto bytes = static_cast<std::size_t>(device_bytes(limits));
  auto memory = dev.allocate(bytes, "step description");
  if (!memory.ok()) return from_gpu(memory.error());
  arrays.memory_ = std::move(memory).value();
  auto ring = gpu::pinned_ring::create(bytes, "step description");
  if (!ring.ok()) return from_gpu(ring.error());
  arrays.ring_ = std::move(ring).value();
  return arrays;
}

std::int64_t step_arrays::payload_place(const step_batch& step) const {
  return whole_lines(places_.tables + static_cast<std::int64_t>(step.block_table.size()) +
                     static_cast<std::int64_t>(step.staged_table.size()));
}

const unsigned char* step_arrays::payload_of(const step_batch& step) const {
  return reinterpret_cast<const unsigned char*>(device_at(payload_place(step)));
}

void step_arrays::write(const step_batch& step, std::int32_t* slot) const {
  put(slot + places_.tokens, step.tokens);
  put(slot + places_.positions, step.positions);
  put(slot + places_.first_token, step.first_token);
  put(slot + places_.kv_lengths, step.kv_lengths);
  put(slot + places_.logit_rows, step.logit_rows);
  put(slot + places_.fed_from, step.fed_from);
  for (std::size_t s = 0; s < step.kv_lengths.size(); ++s)
    std::fill(slot + places_.sequence_of + step.first_token[s],
              slot + places_.sequence_of + step.first_token[s + 1], static_cast<std::int32_t>(s));
  if (limits_.position_offset > 0)
    std::transform(step.positions.begin(), step.positions.end(), slot + places_.position_rows,
                   [this](std::int32_t position) { return position + limits_.position_offset; });
  put(slot + places_.tables, step.block_table);
  put(slot + places_.tables + step.block_table.size(), step.staged_table);
}

result<nothing> step_arrays::set(gpu::device& dev, const step_batch& step,
                                 const step_payload& payload) {
  check(step);
  TWILL_ASSERT(static_cast<std::int64_t>(payload.bytes.size()) <= limits_.carried_bytes,
               "a step carries more bytes than there is room for");
  TWILL_ASSERT(step.fed_from.empty() || payload.drawn != nullptr,
               "a step takes tokens from draws, but has none");
  auto slot = ring_.begin();
  if (!slot.ok()) return from_gpu(slot.error());
  write(step, reinterpret_cast<std::int32_t*>(slot.value()));
  const auto fixed = static_cast<std::size_t>(payload_place(step)) * sizeof(std::int32_t);
  std::copy(payload.bytes.begin(), payload.bytes.end(), slot.value() + fixed);
  dev.enqueue_upload(memory_.data(), slot.value(), fixed + payload.bytes.size());
  ring_.end(dev);

  batch_.n_tokens = static_cast<std::int32_t>(step.tokens.size());
  batch_.n_sequences = static_cast<std::int32_t>(step.kv_lengths.size());
  batch_.max_blocks = step.max_blocks;
  batch_.positions = device_at(places_.positions);
  batch_.sequence_of = device_at(places_.sequence_of);
  batch_.first_token = device_at(places_.first_token);
  batch_.kv_lengths = device_at(places_.kv_lengths);
  batch_.block_table = device_at(places_.tables);
  staged_table_ = batch_.block_table + step.block_table.size();
  if (!step.fed_from.empty())
    gpu::feed_tokens(dev, device_at(places_.tokens), device_at(places_.fed_from), batch_.n_tokens,
                     payload.drawn);
  return nothing{};
}

// A wrong index would silently corrupt another sequence's KV, so every step is checked. Checking
// costs far less than the step.
void step_arrays::check(const step_batch& step) const {
  const auto n_tokens = static_cast<std::int64_t>(step.tokens.size());
  const auto n_sequences = static_cast<std::int64_t>(step.kv_lengths.size());
  TWILL_ASSERT(n_tokens <= limits_.tokens, "a step has more tokens than max_step_tokens");
  TWILL_ASSERT(n_sequences <= limits_.sequences, "a step has more sequences than max_sequences");
  TWILL_ASSERT(static_cast<std::int64_t>(step.logit_rows.size()) <= limits_.logit_rows,
               "a step has more logit rows than max_logit_rows");
  TWILL_ASSERT(step.n_hidden >= 0 &&
                   static_cast<std::size_t>(step.n_hidden) <= step.logit_rows.size(),
               "a step has more hidden states than rows that are wanted");
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
  TWILL_ASSERT(step.fed_from.empty() || step.fed_from.size() == step.tokens.size(),
               "fed_from must have one entry per token");
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
