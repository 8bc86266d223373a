// forced_decoder: runs given tokens through a decoder (teacher forcing) and returns the logits of
// every position.
//
// It runs one sequence at a time and returns one chunk of rows at a time, so that long texts over
// large vocabularies need little memory. Use it on the device's thread only; it must not outlive
// the device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "models/compute.hpp"
#include "models/decoder/decoder.hpp"

namespace twill::bench {

/// The first `prompt_length` tokens are the prompt; the others are its greedy continuation.
struct token_sequence {
  std::vector<std::int32_t> ids;
  std::int32_t prompt_length = 0;
};

/// Logits of consecutive positions.
struct logit_chunk {
  std::int32_t first_position = 0;
  std::int64_t vocab_size = 0;
  std::span<const float> values; // (n_rows, vocab_size)

  std::int64_t n_rows() const {
    return vocab_size == 0 ? 0 : static_cast<std::int64_t>(values.size()) / vocab_size;
  }
  std::span<const float> row(std::int64_t i) const {
    return values.subspan(static_cast<std::size_t>(i * vocab_size),
                          static_cast<std::size_t>(vocab_size));
  }
};

class forced_decoder {
public:
  /// Sequences may have up to `longest_tokens` tokens. Returns the errors of decoder::load.
  static models::result<forced_decoder> load(gpu::device& dev, const models::model_spec& spec,
                                             const models::checkpoint& weights,
                                             const models::compute_choice& types,
                                             std::int32_t longest_tokens);

  /// Starts a sequence. `sequence` must live until next() has returned its last chunk.
  void begin(const token_sequence& sequence);
  /// The next chunk, whose values are valid until the next call. After the last position the chunk
  /// has no rows.
  logit_chunk next();

private:
  gpu::device* dev_ = nullptr;
  std::unique_ptr<models::decoder> decoder_;
  std::vector<std::int32_t> blocks_; ///< all KV blocks, in order
  std::int32_t block_tokens_ = 0;
  std::int32_t rows_per_step_ = 0;
  const token_sequence* sequence_ = nullptr;
  std::int32_t done_ = 0; ///< number of positions that have run
  std::vector<float> logits_;
};

/// The reason why a model cannot run the ids; empty when it can.
std::string reason_to_refuse(const token_sequence& sequence, const models::model_spec& spec);

} // namespace twill::bench
