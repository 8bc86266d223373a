// step_batch: the description of one forward pass, as the executor, offline jobs, tools and tests
// hand it to a decoder. Plain vectors in host memory, reused from step to step; the decoder reads
// them during the call only and checks that they fit together.
#pragma once

#include <cstdint>
#include <vector>

namespace twill::models {

struct step_batch {
  std::vector<std::int32_t> tokens;      // (n_tokens)
  std::vector<std::int32_t> positions;   // (n_tokens) 0-based
  std::vector<std::int32_t> first_token; // (n_sequences + 1) first row of each sequence
  std::vector<std::int32_t> kv_lengths;  // (n_sequences) positions in KV after this step
  std::vector<std::int32_t> block_table; // (n_sequences, max_blocks) unused entries hold anything
  std::int32_t max_blocks = 0;
  std::vector<std::int32_t> logit_rows; // (n_logit_rows) rows whose logits are wanted
  /// The length of each sequence's whole prompt. Only models whose rotary frequencies grow with
  /// the prompt read it.
  std::vector<std::int32_t> prompt_lengths; // (n_sequences)
  /// Block numbers within the KV segment of a staged layer, see models/offload/streams/kv_backing.
  /// Empty when every layer's KV is in the arena.
  std::vector<std::int32_t> staged_table; // (n_sequences, max_blocks)
};

} // namespace twill::models
