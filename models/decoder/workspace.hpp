// workspace: the arrays that hold activations within a layer, allocated once for the largest step.
//
// Owned by the decoder's thread. In shapes, n is the number of rows of the step and r the number of
// rows of logits.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/weight_kind.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// The type of activations that only linear layers read: the outputs of norms, of attention and of
/// the MLP's activation. If products are computed in f16 or bf16 and `device` prefers inputs of
/// that type, this is the compute type; otherwise it is f32. The op that writes such an activation
/// then does the rounding that the linear layer would do, so results are equal bit by bit and half
/// the bytes are moved. All other activations stay f32: the residual stream, because each layer
/// adds to it and would round the sum again; queries, keys and values, because rope and attention
/// compute with them; and logits.
gpu::dtype linear_input_type(const gpu::device_info& device, gpu::compute_type compute);

struct workspace {
  gpu::dtype input_type = gpu::dtype::f32; ///< linear_input_type(): the element type of the `void*`
                                           ///< arrays below
  void* normed = nullptr;                  // (max(n, r), hidden_size)
  float* qkv = nullptr;                    // (n, q_size + 2 * kv_size)
  void* attended = nullptr;                // (n, q_size)
  float* embedded = nullptr;               // (max(n, r), embedding_size), projected models only
  /// The MLP's values before its activation. Empty for an MLP without gate where input_type is f32,
  /// because such an MLP writes these values to `activated` and activates them in place.
  /// // (max(n, r), mlp_size; gated: 2 * mlp_size)
  float* before = nullptr;
  void* activated = nullptr;     // (max(n, r), mlp_size)
  void* last_attended = nullptr; // (r, q_size)
  float* logits = nullptr;       // (r, vocab_size)
  std::vector<gpu::buffer> memory;

  static result<workspace> create(gpu::device& dev, const model_spec& spec,
                                  gpu::compute_type compute, std::int64_t max_tokens,
                                  std::int64_t max_logit_rows);
  /// The number of columns of `before`.
  static std::int64_t before_cols(const model_spec& spec, gpu::dtype input_type);
  /// A view of one of the `void*` arrays as a matrix of input_type.
  gpu::tensor_ref input(void* data, std::int64_t rows, std::int64_t cols) const {
    return gpu::view_2d(data, input_type, rows, cols);
  }
};

} // namespace twill::models
