// decoder: ragged forward passes of any model_spec over paged KV.
//
// A decoder is built, used and destroyed on the thread that owns the device. It owns the packed
// weights, the KV arena and the workspace, and allocates all device memory before the first step.
// With options.offload, threads of its own bring weights to the device before they are used; a step
// whose transfer failed fails, and the decoder must then be destroyed. Returned views are valid
// until the next step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/decoder/step_batch.hpp"
#include "models/errc.hpp"
#include "models/offload/options.hpp"
#include "models/spec.hpp"

namespace twill::models {

namespace offload {
class span_recorder;
class weight_stream;
} // namespace offload

struct decoder_options {
  /// With int8, grouped weights are multiplied in int8, queries, keys and values in int8x2, and
  /// dense weights in f32.
  gpu::compute_type compute = gpu::compute_type::f32;
  gpu::dtype kv_type = gpu::dtype::f32; ///< f32, f16, bf16 or i8
  std::int32_t block_tokens = 16;
  std::int32_t n_blocks = 0;           ///< KV blocks to allocate
  std::int32_t max_context_tokens = 0; ///< longest sequence; 0: the spec's context_length
  std::int32_t max_step_tokens = 512;
  std::int32_t max_sequences = 256;  ///< most sequences in one step
  std::int32_t max_logit_rows = 256; ///< most rows of logits in one step
  offload::offload_options offload;  ///< where weights live
  /// Layers whose KV is not in the arena; run() gets it instead. // (n_layers), or empty
  std::vector<bool> kv_staged;
  std::int64_t carried_bytes = 0; ///< most bytes of a forward() step's cargo
  bool touch_kv = false; ///< load() touches the KV arena's pages, for a job that will fill it
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
  /// Bytes of one KV block in all layers of the arena.
  static std::int64_t block_bytes(const model_spec& spec, const decoder_options& options);
  /// Copies the block_bytes() of one block between the arena and host memory, after the steps so
  /// far. Not with kv_staged.
  void save_block(std::int32_t block, void* to) const;
  void load_block(std::int32_t block, const void* from);
  /// Most columns of a step's block table: the blocks of the longest sequence.
  static std::int32_t block_table_width(const model_spec& spec, const decoder_options& options);
  /// Bytes of weights on the device.
  std::int64_t weight_bytes() const;
  /// Where weights live and what was transferred; null when all of them live on the device.
  const offload::weight_stream* stream() const;
  /// Records the transfers of streamed weights, and with `uses` when each layer computed. The
  /// recorder outlives the decoder.
  void record_to(offload::span_recorder* t, bool uses = false);

  /// One step, launched without waiting for those before it. The result is a view of the logits in
  /// device memory. // (n_logit_rows - n_hidden, vocab_size) f32
  result<gpu::tensor_ref> forward(const step_batch& step, const step_payload& payload = {});
  /// The hidden states that the last forward() was asked for, after the final norm and the
  /// projection to the embedding's size where the model has these, in device memory.
  /// // (step_batch::n_hidden, embedding_size) f32
  gpu::tensor_ref hidden() const;
  /// Where the cargo of a step will lie on the device, 64-byte aligned, until the next step.
  const unsigned char* payload_of(const step_batch& step) const;

  // A pass stage by stage, for block schedules: begin_pass(), then for each stage enter(), run() of
  // any micro-batches that have begun and have passed the earlier stages, and leave(); score()
  // after the last stage. A stage is a layer, or with options.offload.sep_layer half of a layer:
  // its attention, then its MLP.

  /// A micro-batch without `own_hidden` has no memory for hidden states: place_hidden() must be
  /// called before begin() and before each run().
  std::int32_t n_stages() const;
  /// The layer whose KV a stage needs, or -1.
  std::int32_t kv_layer_of(std::int32_t stage) const;
  result<std::unique_ptr<micro_batch>>
  make_micro_batch(std::int32_t max_tokens, std::int32_t max_sequences, bool own_hidden = true);
  void begin_pass(bool whole);
  /// Announces the tokens of the next calls of begin(), in order. Rows of the embedding that live
  /// elsewhere are then fetched ahead.
  void prefetch(std::span<const std::int32_t> tokens);
  /// Sets where the hidden states of `batch` are from now on. // (max_tokens, hidden_size) f32,
  /// device
  void place_hidden(micro_batch& batch, float* hidden);
  result<nothing> begin(micro_batch& batch, const step_batch& step);
  result<nothing> enter(std::int32_t stage);
  /// `staged` is the KV of a layer that is not in the arena; staged_table has its block ids.
  void run(micro_batch& batch, std::int32_t stage, const gpu::kv_layer* staged = nullptr);
  void leave(std::int32_t stage);
  /// Logits of the micro-batches that have passed the last stage, in order; at most max_logit_rows.
  result<gpu::tensor_ref> score(std::span<micro_batch* const> batches);

private:
  decoder();
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::models
