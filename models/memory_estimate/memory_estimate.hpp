// memory_estimate: how much memory a model takes, computed before anything is allocated.
//
// Weights are counted from the shapes and kinds of a checkpoint's tensors, with the same layouts as
// the packing code uses; workspace and activations from the shapes of the arrays that a decoder
// allocates. Nothing is packed or allocated here. Streamed weights and scratch memory count as 0
// bytes if the spec is not valid. A tensor that is missing or cannot be read counts as 0 bytes,
// because loading reports what is wrong with it. Any thread may call.
//
// job_memory adds up what an offline job takes. offload/plan/plan_memory estimates the bytes of a
// model from its shape alone, without files, and how the bytes are divided among device, host
// memory and disk.
#pragma once

#include <cstdint>

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/compute.hpp"
#include "models/decoder/decoder.hpp"
#include "models/model.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// Bytes of weights as they are packed.
struct packed_weights {
  std::int64_t tables = 0; ///< the embedding, and the head if it is a separate matrix
  std::int64_t layers = 0; ///< the matrices of all layers
  std::int64_t mlps = 0;   ///< the part of `layers` that does not belong to attention
  std::int64_t small = 0;  ///< weights that are always on the device: norms, biases, learned
                           ///< positions, and projections between embeddings and hidden states
  std::int64_t matrices() const { return tables + layers; }
  std::int64_t all() const { return matrices() + small; }
};

packed_weights estimate_packed_weights(const model_spec& spec, const checkpoint& weights);

/// Device memory of weights of which some are streamed.
struct streamed_weights {
  std::int64_t resident = 0;       ///< matrices that live on the device
  std::int64_t ring = 0;           ///< matrices in use or being copied to the device
  std::int64_t embedding_rows = 0; ///< the embedding cache
  /// Needed only during loading, if the rows of the model's output head are normalised: copies of
  /// some rows, from which their lengths are computed. They are freed before the buffers for
  /// streamed weights (`ring`) are allocated.
  std::int64_t head_rows = 0;
};

/// Estimates the device memory that decoder::load() will take for the matrices (layers, embedding
/// and output head) when options.offload says that weights are streamed. Weights that are always on
/// the device (packed_weights::small) are not counted: norms, biases, learned positions, and the
/// projections between embeddings and hidden states.
streamed_weights estimate_streamed_weights(const model_spec& spec, const checkpoint& weights,
                                           const decoder_options& options);

/// Workspace and activations of the longest step that the options allow, with its largest payload.
std::int64_t estimate_step_bytes(const gpu::device_info& device, const model_spec& spec,
                                 const decoder_options& options);

/// Scratch memory that ops need in the longest step that the options allow; decoder::load()
/// reserves this memory.
std::int64_t estimate_scratch_bytes(const gpu::device& dev, const model_spec& spec,
                                    const checkpoint& weights, const decoder_options& options);

/// Activations and arrays of a step with the given numbers of tokens, sequences and rows of logits.
/// Its block tables have the largest width that the options allow.
std::int64_t estimate_activation_bytes(const model_spec& spec, const decoder_options& options,
                                       std::int32_t tokens, std::int32_t sequences,
                                       std::int32_t rows);

/// The values from which estimate_kv_blocks() derives how many KV blocks a daemon allocates.
struct kv_budget {
  std::int64_t asked_bytes = 0;     ///< `kv.memory`; 0: estimate_kv_blocks() chooses the size
  std::int64_t available_bytes = 0; ///< memory that is now free where KV will be allocated
  std::int64_t budget_bytes = 0;    ///< `device.memory`; 0: no cap
  std::int64_t other_bytes = 0;     ///< weights and workspace that share the budget
  std::int64_t block_bytes = 1;
  std::int32_t block_tokens = 16;
  std::int32_t max_running = 1;
  std::int32_t max_context_tokens = 1;
};

/// Returns how many KV blocks fit budget.asked_bytes. If that is 0, the blocks may take a quarter
/// of available_bytes, but at most budget_bytes - other_bytes if budget_bytes is not 0. Never
/// returns more blocks than `max_running` sequences of full length can use.
std::int32_t estimate_kv_blocks(const kv_budget& budget);

/// Memory that a served model would take, computed from the headers of its files alone.
struct serving_footprint {
  std::int64_t weight_bytes = 0;          ///< bytes of all tensors in the file
  std::int64_t kv_bytes_per_token = 0;    ///< bytes of one token in all layers
  std::int32_t context_tokens = 0;        ///< length of the longest sequence
  std::int64_t kv_bytes_per_sequence = 0; ///< bytes of a sequence of `context_tokens` tokens
};

serving_footprint estimate_footprint(const model& model, const compute_choice& types,
                                     const config::options& options);

} // namespace twill::models
