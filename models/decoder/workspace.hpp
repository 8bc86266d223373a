// workspace: activations within a layer, sized once for the largest step.
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

/// The type of the activations that linear layers alone read: norms, attention's output and what
/// the MLP's activation gave. Where a device asks for it and products are computed in f16 or bf16,
/// it is that type. The op that writes such a value then rounds it as the layer would, so no bit of
/// a result changes and half the bytes are moved. All else stays f32: the residual stream, because
/// each layer adds to it and would round the sum anew; queries, keys and values before rope and
/// attention, which compute with them; and logits.
gpu::dtype linear_input_type(const gpu::device_info& device, gpu::compute_type compute);

struct workspace {
  gpu::dtype input_type = gpu::dtype::f32; ///< linear_input_type(), of the arrays without a type
  void* normed = nullptr;                  // (max(n, r), hidden_size)
  float* qkv = nullptr;                    // (n, q_size + 2 * kv_size)
  void* attended = nullptr;                // (n, q_size)
  float* embedded = nullptr;               // (max(n, r), embedding_size), projected models only
  /// The MLP before its activation. An MLP without gate has no such array where input_type is f32,
  /// since it is activated in place. // (max(n, r), mlp_size; gated: 2 * mlp_size)
  float* before = nullptr;
  void* activated = nullptr;     // (max(n, r), mlp_size)
  void* last_attended = nullptr; // (r, q_size)
  float* logits = nullptr;       // (r, vocab_size)
  std::vector<gpu::buffer> memory;

  static result<workspace> create(gpu::device& dev, const model_spec& spec,
                                  gpu::compute_type compute, std::int64_t max_tokens,
                                  std::int64_t max_logit_rows);
  /// Columns of `before`, of all its rows.
  static std::int64_t before_cols(const model_spec& spec, gpu::dtype input_type);
  /// A matrix of an array without a type.
  gpu::tensor_ref input(void* data, std::int64_t rows, std::int64_t cols) const {
    return gpu::view_2d(data, input_type, rows, cols);
  }
};

} // namespace twill::models
