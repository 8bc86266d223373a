// decoder: runs any model_spec: one ragged forward pass over paged KV.
//
// Threads: built, used and destroyed on the thread that owns the device. Owns the packed weights,
// the KV arenas and the workspace; everything is allocated before the first step, a step allocates
// nothing. Returned views are valid until the next forward().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "gpu/device.hpp"
#include "gpu/ops/linear.hpp"
#include "models/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

struct decoder_options {
  /// int8 is for grouped weights: dense ones are computed in f32, queries, keys and values in
  /// int8x2.
  gpu::compute_type compute = gpu::compute_type::f32;
  gpu::dtype kv_type = gpu::dtype::f32; ///< f32, f16, bf16 or i8
  std::int32_t block_tokens = 16;
  std::int32_t n_blocks = 0;           ///< KV blocks to allocate
  std::int32_t max_context_tokens = 0; ///< of one sequence; 0: the spec's context_length
  std::int32_t max_step_tokens = 512;
  std::int32_t max_sequences = 256;  ///< sequences of one step
  std::int32_t max_logit_rows = 256; ///< rows of logits of one step
};

/// Host-side description of one step. Spans are read during forward() only.
struct step_input {
  std::span<const std::int32_t> tokens;      // (n_tokens)
  std::span<const std::int32_t> positions;   // (n_tokens) 0-based
  std::span<const std::int32_t> first_token; // (n_sequences + 1) first row of each sequence
  std::span<const std::int32_t> kv_lengths;  // (n_sequences) positions in KV after this step
  std::span<const std::int32_t> block_table; // (n_sequences, max_blocks)
  std::int32_t max_blocks = 0;
  std::span<const std::int32_t> logit_rows; // (n_logit_rows) rows whose logits are wanted
  /// Tokens of each sequence's prompt, all of it; read only where frequencies grow with it.
  std::span<const std::int32_t> prompt_lengths; // (n_sequences)
};

class decoder {
public:
  /// `progress` hears the share of weights packed, 0..1.
  static result<std::unique_ptr<decoder>> load(gpu::device& dev, const model_spec& spec,
                                               const checkpoint& weights,
                                               const decoder_options& options,
                                               const std::function<void(double)>& progress);
  ~decoder();

  const model_spec& spec() const;
  /// Device memory of one KV block, all layers.
  static std::int64_t block_bytes(const model_spec& spec, const decoder_options& options);
  std::int64_t weight_bytes() const;

  /// One step. The logits view is device memory. // (n_logit_rows, vocab_size) f32
  gpu::tensor_ref forward(const step_input& step);

private:
  decoder();
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::models
