// decoder: ragged forward passes of any model_spec over paged KV.
//
// A decoder is built, used and destroyed on the thread that owns the device. It owns the packed
// weights, the KV arena and the workspace, and allocates all device memory before the first step.
// With options.offload, I/O threads copy weights to the device before they are used. If such a
// transfer fails, the step fails and the decoder must be destroyed. Returned views are valid until
// the next step.
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
  /// With int8, linear layers with quantised weights multiply in int8, and those with dense weights
  /// in f32. The projection to queries, keys and values then uses, instead of int8, the type
  /// int8x2, which represents each activation by two int8 digits.
  gpu::compute_type compute = gpu::compute_type::f32;
  gpu::dtype kv_type = gpu::dtype::f32; ///< f32, f16, bf16 or i8
  std::int32_t block_tokens = 16;
  std::int32_t n_blocks = 0;           ///< KV blocks to allocate
  std::int32_t max_context_tokens = 0; ///< longest sequence; 0: the spec's context_length
  std::int32_t max_step_tokens = 512;
  std::int32_t max_sequences = 256;  ///< most sequences in one step
  std::int32_t max_logit_rows = 256; ///< most rows of logits in one step
  offload::offload_options offload;  ///< where weights live
  /// True for each layer whose KV is not in the kv_arena; the caller passes that KV to run().
  /// Empty if the arena has the KV of all layers. // (n_layers)
  std::vector<bool> kv_staged;
  std::int64_t carried_bytes = 0; ///< the largest step_payload of a forward() call
  bool touch_kv = false; ///< load() touches all pages of the KV arena at once, for a job that will
                         ///< fill the arena anyway
};

/// A micro-batch: some sequences whose next tokens pass through the layers together. Each
/// micro-batch has its own activations, so that several micro-batches can run one layer in turn. A
/// micro-batch must not outlive its decoder's device.
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
  /// Calls `progress` with the share of the weights that is packed so far, from 0 to 1.
  static result<std::unique_ptr<decoder>> load(gpu::device& dev, const model_spec& spec,
                                               const checkpoint& weights,
                                               const decoder_options& options,
                                               const std::function<void(double)>& progress);
  ~decoder();

  const model_spec& spec() const;
  /// Bytes of one KV block in all layers of the arena.
  static std::int64_t block_bytes(const model_spec& spec, const decoder_options& options);
  /// save_block() and load_block() copy one KV block, block_bytes() in size, from the arena to host
  /// memory and back, after all steps launched so far. They must not be called if
  /// decoder_options::kv_staged is not empty.
  void save_block(std::int32_t block, void* to) const;
  void load_block(std::int32_t block, const void* from);
  /// The most columns that a step's block table may have: the number of blocks of the longest
  /// sequence.
  static std::int32_t block_table_width(const model_spec& spec, const decoder_options& options);
  /// Bytes of weights on the device.
  std::int64_t weight_bytes() const;
  /// The object that copies weights which do not stay on the device to the device before they are
  /// used; its stats tell what was transferred. Null when all weights stay on the device.
  const offload::weight_stream* stream() const;
  /// Records the transfers of streamed weights, and with `uses` also when each layer computed. The
  /// recorder must outlive the decoder.
  void record_to(offload::span_recorder* t, bool uses = false);

  /// Launches one step without waiting for earlier steps to finish. The result is a view of the
  /// logits in device memory. // (n_logit_rows - n_hidden, vocab_size) f32
  result<gpu::tensor_ref> forward(const step_batch& step, const step_payload& payload = {});
  /// The hidden states that the step of the last forward() requested (step_batch::n_hidden), in
  /// device memory. They are taken after the final norm and after the projection to the embedding's
  /// size, where the model has these. // (step_batch::n_hidden, embedding_size) f32
  gpu::tensor_ref hidden() const;
  /// The device address at which the payload of `step` (step_payload::bytes, which the caller sends
  /// along with the step) will lie until the next step. It is aligned to 64 bytes.
  const unsigned char* payload_of(const step_batch& step) const;

  // The functions below run a pass stage by stage, for block schedules
  // (models/offload/plan/block_schedule.hpp). Call begin_pass() first. Then, for each stage, call
  // enter(), call run() for any micro-batches that have begun and have passed all earlier stages,
  // and call leave(). Call score() after the last stage. A stage is a layer; with
  // options.offload.sep_layer it is half of a layer, so that a layer's attention and its MLP are
  // two stages.

  /// The number of stages of a pass.
  std::int32_t n_stages() const;
  /// The layer whose KV a stage needs, or -1.
  std::int32_t kv_layer_of(std::int32_t stage) const;
  /// Creates a micro-batch. Without `own_hidden` it has no memory for hidden states, and
  /// place_hidden() must be called before begin() and before each run().
  result<std::unique_ptr<micro_batch>>
  make_micro_batch(std::int32_t max_tokens, std::int32_t max_sequences, bool own_hidden = true);
  void begin_pass(bool whole);
  /// Announces the tokens of the next begin() calls, in order, so that embedding rows which are not
  /// on the device can be fetched before they are needed.
  void prefetch(std::span<const std::int32_t> tokens);
  /// Sets the device memory that holds the hidden states of `batch` from now on.
  /// // (max_tokens, hidden_size) f32, device
  void place_hidden(micro_batch& batch, float* hidden);
  result<nothing> begin(micro_batch& batch, const step_batch& step);
  result<nothing> enter(std::int32_t stage);
  /// `staged` is the KV of the stage's layer if it is not in the arena; step_batch::staged_table
  /// then has the block ids. Null means that the KV is in the arena.
  void run(micro_batch& batch, std::int32_t stage, const gpu::kv_layer* staged = nullptr);
  void leave(std::int32_t stage);
  /// Computes the logits of micro-batches that have passed the last stage, in the order of
  /// `batches`; at most max_logit_rows rows in one call.
  result<gpu::tensor_ref> score(std::span<micro_batch* const> batches);

private:
  decoder();
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::models
