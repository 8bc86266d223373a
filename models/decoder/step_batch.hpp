// step_batch: the description of one forward pass, as the executor, offline jobs, tools and tests
// hand it to a decoder. Plain vectors in host memory, reused from step to step; the decoder reads
// them during the call only and checks that they fit together.
#pragma once

#include <cstdint>
#include <span>
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
  /// Rows whose token the step before drew: the number of that draw, or -1 where `tokens` has it.
  /// Empty when it has them all.
  std::vector<std::int32_t> fed_from; // (n_tokens)
  /// The last so many of `logit_rows` are wanted as hidden states instead: what the head multiplies
  /// for their logits, without the logits.
  std::int32_t n_hidden = 0;
};

/// What else reaches the device with a step.
struct step_payload {
  /// Bytes for those who use the step's logits; they lie at decoder::cargo_of(step) then.
  std::span<const unsigned char> bytes;
  /// What step_batch::fed_from counts in. // (n_draws) device
  const std::int32_t* drawn = nullptr;
};

} // namespace twill::models
