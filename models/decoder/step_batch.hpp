// step_batch: the description of one forward pass, as the executor, offline jobs, tools and tests
// hand it to a decoder. It consists of plain vectors in host memory, which the caller may reuse
// from step to step: the decoder reads them during the call only. The decoder checks that they fit
// together.
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
  /// The length of each sequence's whole prompt. It is read only for models whose rotary
  /// frequencies change with that length.
  std::vector<std::int32_t> prompt_lengths; // (n_sequences)
  /// The block table of the layers whose KV is not in the decoder's kv_arena but in buffers of an
  /// offline job (models/offload/streams/kv_backing.hpp). Block numbers count within the KV of one
  /// layer and micro-batch. Empty when every layer's KV is in the arena.
  std::vector<std::int32_t> staged_table; // (n_sequences, max_blocks)
  /// For a row whose token was drawn on the device by the step before, the index of that token in
  /// step_payload::drawn; -1 for a row whose token is in `tokens`. Empty when `tokens` has every
  /// row's token.
  std::vector<std::int32_t> fed_from; // (n_tokens)
  /// For the last `n_hidden` rows of `logit_rows` the decoder returns final hidden states (the
  /// input of the output head) instead of logits.
  std::int32_t n_hidden = 0;
};

/// Further input of a step that is used on the device.
struct step_payload {
  /// Bytes that are copied to the device with the step, for the ops that later use its logits, such
  /// as sampling. They lie at decoder::payload_of(step).
  std::span<const unsigned char> bytes;
  /// The drawn token ids that step_batch::fed_from indexes. // (n_draws) device
  const std::int32_t* drawn = nullptr;
};

} // namespace twill::models
