// decoder: runs any model_spec: one ragged forward pass over paged KV.
//
// Threads: built, used and destroyed on the thread that owns the device. Owns the packed weights,
// the KV arenas and the workspace; all device memory is allocated before the first step. Weights
// that do not live on the device (options.offload) are brought ahead of use by threads of its own;
// a step then fails when a transfer did, and the decoder is to be destroyed. Returned views are
// valid until the next step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/offload/options.hpp"
#include "models/spec.hpp"

namespace twill::models {

namespace offload {
class timeline;
class weight_stream;
} // namespace offload

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
  offload::offload_options offload;  ///< where weights live
  /// Layers whose KV is no part of the arena: run() is given it. // (n_layers), or empty
  std::vector<bool> kv_staged;
  bool touch_kv = false; ///< the KV arena is backed with memory by load(): for a job that fills it
};

/// Device memory of weights some of which are at home elsewhere.
struct streamed_memory {
  std::int64_t homes = 0; ///< at home on the device
  std::int64_t ring = 0;  ///< in use or on their way
  std::int64_t rows = 0;  ///< rows of the embedding
  /// Of the head while its rows are measured, where it is normalised; gone before the ring comes.
  std::int64_t head_rows = 0;
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
  /// Where staged layers have the same blocks, see models/offload/kv_homes; read only where there
  /// are such layers.
  std::span<const std::int32_t> staged_table; // (n_sequences, max_blocks)
};

/// A step of some sequences on its way through the layers: activations of its own, so that several
/// can take turns at each layer. Must not outlive its decoder's device.
class micro_batch {
public:
  ~micro_batch();

private:
  friend class decoder;
  micro_batch();
  struct impl;
  std::unique_ptr<impl> impl_;
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
  /// Columns that a step's block table may have: blocks of the longest sequence.
  static std::int32_t block_table_width(const model_spec& spec, const decoder_options& options);
  /// Device memory that load() sets aside for what ops prepare in steps as long as the options
  /// allow.
  static std::int64_t scratch_bytes(const gpu::device& dev, const model_spec& spec,
                                    const checkpoint& weights, const decoder_options& options);
  /// What load() will take for weights, but for norms, biases and the like, where options.offload
  /// streams them.
  static streamed_memory streamed_bytes(const model_spec& spec, const checkpoint& weights,
                                        const decoder_options& options);
  /// Device memory of weights.
  std::int64_t weight_bytes() const;
  /// Where weights live and what moved; null when all of them live on the device.
  const offload::weight_stream* stream() const;
  void record_to(offload::timeline* t);

  /// One step. The logits view is device memory. // (n_logit_rows, vocab_size) f32
  result<gpu::tensor_ref> forward(const step_input& step);

  /// The same cut into pieces, for schedules: begin_pass(), then for each stage enter(), run() of
  /// any micro-batches that have been begun and have passed the stages before, and leave();
  /// score() after the last. A stage is a layer, or with options.offload.sep_layer half of one: its
  /// attention, then its MLP. `whole`: the pass goes on to score().
  /// Without `own_hidden` it has no memory for hidden states: place_hidden() before begin() and
  /// before each run().
  std::int32_t n_stages() const;
  /// The layer whose KV a stage needs, or -1.
  std::int32_t kv_layer_of(std::int32_t stage) const;
  result<std::unique_ptr<micro_batch>>
  make_micro_batch(std::int32_t max_tokens, std::int32_t max_sequences, bool own_hidden = true);
  void begin_pass(bool whole);
  /// The tokens that the next begin()s take, in order, once known: where rows of the embedding
  /// travel, these set out.
  void expect(std::span<const std::int32_t> tokens);
  /// Where its hidden states are from now on. // (max_tokens, hidden_size) f32, device
  void place_hidden(micro_batch& batch, float* hidden);
  result<nothing> begin(micro_batch& batch, const step_input& step);
  result<nothing> enter(std::int32_t stage);
  /// `staged`: the KV of a layer that is not in the arena, numbered as staged_table says.
  void run(micro_batch& batch, std::int32_t stage, const gpu::kv_layer* staged = nullptr);
  void leave(std::int32_t stage);
  /// Logits of all that have passed the last stage, in order; at most max_logit_rows rows.
  result<gpu::tensor_ref> score(std::span<micro_batch* const> batches);

private:
  decoder();
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::models
