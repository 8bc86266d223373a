// decoder::impl: the parts that a decoder owns, and the functions that run a pass layer by layer.
//
// decoder.cpp implements loading and decoder_pass.cpp implements passes. All of it runs on the
// thread that owns the device.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "models/decoder/activations.hpp"
#include "models/decoder/decoder.hpp"
#include "models/decoder/decoder_weights.hpp"
#include "models/decoder/kv_arena.hpp"
#include "models/decoder/rotary_angles.hpp"
#include "models/decoder/workspace.hpp"

namespace twill::models {

struct micro_batch::impl {
  activations state;
};

struct decoder::impl {
  gpu::device* dev = nullptr;
  model_spec spec;
  decoder_options options;
  workspace work;
  activations own; ///< the activations that forward() uses
  rotary_angles angles;
  kv_arena kv;
  decoder_weights weights;

  result<nothing> load(const checkpoint& source, const std::function<void(double)>& progress);
  step_limits limits_for(std::int32_t tokens, std::int32_t sequences) const;

  gpu::tensor_ref hidden; ///< the hidden states that the last forward() computed for its caller

  result<gpu::tensor_ref> forward(const step_batch& input, const step_payload& payload);

  /// Uploads the step and computes its embeddings.
  result<nothing> begin(activations& a, const step_batch& input, const step_payload& payload);
  /// The part of a layer that a stage runs.
  struct stage {
    std::size_t layer = 0;
    bool attention = true, mlp = true;
  };
  std::int32_t n_stages() const {
    return options.offload.sep_layer ? 2 * spec.n_layers : spec.n_layers;
  }
  stage stage_at(std::int32_t number) const;
  result<nothing> enter(std::int32_t stage);
  void leave(std::int32_t stage);
  void run(activations& a, std::int32_t stage);
  result<gpu::tensor_ref> score(std::span<activations* const> batches);

private:
  result<nothing> embed(activations& a, const step_batch& input);
  void attend(activations& a, std::size_t layer);
  void close_attention(std::size_t layer, gpu::tensor_ref attended, gpu::tensor_ref hidden);
  void run_mlp(std::size_t layer, gpu::tensor_ref hidden);
  std::int32_t group_of(const stage& at) const;
  struct head_rows;
  /// Writes the input of the output head (lm_head) for those rows of `a` whose logits are wanted,
  /// beginning at row `first` of the input. The rows before `first` belong to other activations of
  /// the pass.
  gpu::tensor_ref head_input(const activations& a, std::int64_t first);
  /// Computes the final hidden states (the input of the output head) of those rows of `a` for which
  /// the caller wants hidden states instead of logits.
  gpu::tensor_ref finish_hidden(const activations& a);
  void multiply_head(const gpu::packed_matrix& head, std::int64_t first_column,
                     std::span<const head_rows> rows, gpu::tensor_ref logits);
  const gpu::packed_matrix* first_after(std::size_t layer) const;
};

} // namespace twill::models
