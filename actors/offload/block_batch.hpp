// block_batch: the sequences of one micro-batch: what each has, and the next step of them all.
//
// Plain bookkeeping, one thread; owns nothing but vectors. KV blocks come from a pool that all
// micro-batches share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/offload/block_run.hpp"
#include "models/decoder/decoder.hpp"

namespace twill::actors {

/// Free KV blocks.
class block_list {
public:
  explicit block_list(std::int32_t n_blocks);
  bool empty() const { return free_.empty(); }
  std::int32_t take();
  void give(std::vector<std::int32_t>& blocks);

private:
  std::vector<std::int32_t> free_;
};

struct block_sequence {
  const block_prompt* prompt = nullptr;
  block_output* output = nullptr;
  std::int32_t length = 0; ///< positions in KV
  std::vector<std::int32_t> blocks;
  std::int32_t place = 0; ///< in its micro-batch, for the numbers of its blocks in staged layers
  bool done = false;

  std::int32_t prompt_length() const { return static_cast<std::int32_t>(prompt->ids.size()); }
  bool in_prefill() const { return length < prompt_length(); }
};

/// Which staged blocks the sequences' next step reads, and which it writes.
struct staged_ranges {
  std::vector<models::offload::block_range> used, written;
};
staged_ranges ranges_of(std::span<const block_sequence> sequences, std::int32_t block_tokens);

/// How blocks are numbered where KV travels, see models/offload/kv_homes; tails after the image.
struct image_numbers {
  std::int32_t sequences = 0; ///< of a micro-batch; 0: no KV travels
  std::int32_t n_blocks = 0;  ///< of an image
};

/// The arrays behind a step_input.
struct block_step {
  std::vector<std::int32_t> tokens, positions, first_token, kv_lengths, prompt_lengths;
  std::vector<std::int32_t> block_table, staged_table, logit_rows;
  std::int32_t max_blocks = 0;
  std::vector<block_sequence*> drawing; ///< whose logits they are, in order

  models::step_input input() const;
};

/// Collects sequences' next rows into one step.
class step_builder {
public:
  step_builder(block_list& blocks, std::int32_t block_tokens, const image_numbers& images)
      : blocks_(blocks), block_tokens_(block_tokens), images_(images) {}

  std::int32_t rows() const { return static_cast<std::int32_t>(step_.tokens.size()); }
  /// The next `n` tokens of a sequence: part of its prompt, or what it drew last. False: no block
  /// is free.
  bool add(block_sequence& s, std::int32_t n);
  block_step finish();

private:
  block_list& blocks_;
  std::int32_t block_tokens_;
  image_numbers images_;
  block_step step_;
  std::vector<block_sequence*> rows_of_;
};

/// Takes in a drawn token; the sequence may be done then, and has given its blocks back.
void take_token(block_sequence& s, std::int32_t id, const block_options& options,
                block_list& blocks);

} // namespace twill::actors
