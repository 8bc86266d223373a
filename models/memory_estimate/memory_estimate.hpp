// memory_estimate: how much memory a model takes, computed before anything is allocated.
//
// Weights are counted by the shapes and kinds of a checkpoint's tensors, with the layouts that the
// code which packs them uses; workspace and activations by the shapes of the arrays that a decoder
// allocates. Nothing is packed or allocated here. A spec that is not valid needs nothing, and a
// tensor that is missing or cannot be read counts as nothing: loading says what is wrong with it.
// Any thread. What an offline job takes is the sum in job_memory. How the bytes of a model that
// need not exist fall on three tiers is another question, which offload/plan/plan_memory answers.
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
  std::int64_t tables = 0; ///< the embedding, and the head where it is a matrix of its own
  std::int64_t layers = 0; ///< the matrices of all layers
  std::int64_t mlps = 0;   ///< the part of `layers` that does not belong to attention
  std::int64_t small = 0;  ///< norms, biases, positions and projections: always on the device
  std::int64_t matrices() const { return tables + layers; }
  std::int64_t all() const { return matrices() + small; }
};

packed_weights estimate_packed_weights(const model_spec& spec, const checkpoint& weights);

/// Device memory of weights some of which are streamed.
struct streamed_weights {
  std::int64_t resident = 0;       ///< matrices that live on the device
  std::int64_t ring = 0;           ///< matrices in use or on their way
  std::int64_t embedding_rows = 0; ///< the embedding cache
  /// Rows of a normalised head while their norms are taken; freed before the ring is allocated.
  std::int64_t head_rows = 0;
};

/// What decoder::load() will take for weights that `options.offload` streams, without those that
/// are always on the device.
streamed_weights estimate_streamed_weights(const model_spec& spec, const checkpoint& weights,
                                           const decoder_options& options);

/// Workspace and activations of steps as long as the options allow, with their cargo.
std::int64_t estimate_step_bytes(const gpu::device_info& device, const model_spec& spec,
                                 const decoder_options& options);

/// Scratch memory that ops need in steps as long as the options allow; load() sets it aside.
std::int64_t estimate_scratch_bytes(const gpu::device& dev, const model_spec& spec,
                                    const checkpoint& weights, const decoder_options& options);

/// Activations and arrays of a step of so many tokens, sequences and rows of logits; its block
/// tables are as wide as the options allow.
std::int64_t estimate_activation_bytes(const model_spec& spec, const decoder_options& options,
                                       std::int32_t tokens, std::int32_t sequences,
                                       std::int32_t rows);

/// What decides how many KV blocks a daemon allocates.
struct kv_budget {
  std::int64_t asked_bytes = 0;     ///< `kv.memory`; 0: derive the size
  std::int64_t available_bytes = 0; ///< memory that is free now where KV will live
  std::int64_t budget_bytes = 0;    ///< `device.memory`; 0: no cap
  std::int64_t other_bytes = 0;     ///< weights and workspace that share the budget
  std::int64_t block_bytes = 1;
  std::int32_t block_tokens = 16;
  std::int32_t max_running = 1;
  std::int32_t max_context_tokens = 1;
};

/// The blocks that fit the bytes that were asked for. Without a wish, a quarter of the available
/// memory within the budget. Never more than `max_running` sequences of full length can use.
std::int32_t estimate_kv_blocks(const kv_budget& budget);

/// What a model would take when it is served, from its headers alone.
struct serving_footprint {
  std::int64_t weight_bytes = 0;          ///< as in the file
  std::int64_t kv_bytes_per_token = 0;    ///< all layers
  std::int32_t context_tokens = 0;        ///< of the longest sequence
  std::int64_t kv_bytes_per_sequence = 0; ///< of that length
};

serving_footprint estimate_footprint(const model& model, const compute_choice& types,
                                     const config::options& options);

} // namespace twill::models
