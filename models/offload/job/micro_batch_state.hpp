// micro_batch_state: the sequences of one micro-batch of an offline job, their KV blocks, and the
// building of their next step.
//
// Plain bookkeeping on one thread; owns nothing but vectors. KV blocks come from a pool that all
// micro-batches share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/decoder/decoder.hpp"
#include "models/offload/job/offload_job.hpp"

namespace twill::models::offload {

/// The KV blocks that belong to no sequence.
class free_kv_blocks {
public:
  explicit free_kv_blocks(std::int32_t n_blocks);
  bool empty() const { return free_.empty(); }
  std::int32_t take();
  void give(std::vector<std::int32_t>& blocks);

private:
  std::vector<std::int32_t> free_;
};

struct job_sequence {
  const job_prompt* prompt = nullptr;
  job_output* output = nullptr;
  std::int32_t length = 0; ///< positions in KV
  std::vector<std::int32_t> blocks;
  std::int32_t index = 0; ///< index in its micro-batch; it determines the sequence's block numbers
                          ///< in staged layers
  bool done = false;

  std::int32_t prompt_length() const { return static_cast<std::int32_t>(prompt->ids.size()); }
  bool in_prefill() const { return length < prompt_length(); }
};

/// The KV blocks that the next step of the sequences reads and writes in a staged layer, that is,
/// in a layer whose KV is kept by a kv_stream and not in the decoder's kv_arena.
struct staged_ranges {
  std::vector<block_range> used, written;
};
staged_ranges ranges_of(std::span<const job_sequence> sequences, std::int32_t block_tokens);

/// The sizes that determine which number identifies each KV block of a staged layer. Full blocks of
/// all sequences have the first `n_blocks` numbers, and one partial block per sequence has a number
/// after them (see streams/kv_backing.hpp).
struct staged_numbering {
  std::int32_t sequences = 0; ///< sequences of a micro-batch; 0: no layer is staged
  std::int32_t n_blocks = 0;  ///< blocks of a segment
};

/// A step of an offline job. `drawing` has the sequences that draw a token from the step's logits,
/// in the order of the rows of logits.
struct job_step : step_batch {
  std::vector<job_sequence*> drawing;
};

/// Collects the next rows of sequences into one step.
class step_builder {
public:
  step_builder(free_kv_blocks& blocks, std::int32_t block_tokens, const staged_numbering& images)
      : blocks_(blocks), block_tokens_(block_tokens), numbering_(images) {}

  std::int32_t rows() const { return static_cast<std::int32_t>(step_.tokens.size()); }
  /// Adds the next `n` tokens of a sequence: part of its prompt, or the token that it drew last.
  /// Returns false if no KV block is free.
  bool add(job_sequence& s, std::int32_t n);
  job_step finish();

private:
  free_kv_blocks& blocks_;
  std::int32_t block_tokens_;
  staged_numbering numbering_;
  job_step step_;
  std::vector<job_sequence*> rows_of_;
};

/// Appends a drawn token to a sequence. If this ends the sequence, its blocks go back to `blocks`.
void take_token(job_sequence& s, std::int32_t id, const job_options& options,
                free_kv_blocks& blocks);

} // namespace twill::models::offload
