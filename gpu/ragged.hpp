// ragged_batch: the shape of one step on the device, shared by every op of a forward pass.
//
// A step holds any mix of prefill chunks and single decode tokens; the rows (tokens) of all
// sequences follow one another. All arrays are int32 in device memory; the caller owns them and
// keeps them until the step is over.
#pragma once

#include <cstdint>

namespace twill::gpu {

struct ragged_batch {
  std::int32_t n_tokens = 0;
  std::int32_t n_sequences = 0;
  std::int32_t max_blocks = 0;               ///< columns of block_table
  const std::int32_t* positions = nullptr;   // (n_tokens) 0-based position in its sequence
  const std::int32_t* sequence_of = nullptr; // (n_tokens) row of block_table
  const std::int32_t* first_token = nullptr; // (n_sequences + 1) first row of each sequence
  const std::int32_t* kv_lengths =
      nullptr; // (n_sequences) positions in KV once this step is stored
  const std::int32_t* block_table = nullptr; // (n_sequences, max_blocks) block ids
};

} // namespace twill::gpu
