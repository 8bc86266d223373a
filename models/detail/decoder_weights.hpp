// decoder_weights: all weights of a decoder, checked against its spec and packed on the device.
//
// Owned by the decoder's thread; must not outlive the device.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/ops/linear.hpp"
#include "models/checkpoint.hpp"
#include "models/detail/projection.hpp"
#include "models/spec.hpp"

namespace twill::models {

struct layer_weights {
  gpu::buffer attention_norm; // (hidden_size) f32
  projection qkv;             // (q_size + 2 * kv_size, hidden_size)
  projection o;               // (hidden_size, q_size)
  gpu::buffer mlp_norm;       // (hidden_size) f32
  projection gate_up;         // (2 * mlp_size, hidden_size)
  projection down;            // (hidden_size, mlp_size)
};

struct decoder_weights {
  gpu::packed_matrix embedding; // (vocab_size, hidden_size)
  gpu::packed_matrix head;      // (vocab_size, hidden_size); empty when tied
  gpu::compute_type head_compute = gpu::compute_type::f32;
  gpu::buffer final_norm; // (hidden_size) f32
  gpu::buffer inv_freq;   // (rotary_dim / 2) f32
  std::vector<layer_weights> layers;

  const gpu::packed_matrix& head_matrix() const { return head ? head : embedding; }
  std::int64_t bytes() const;
};

/// Fails on a tensor that is missing, has another shape, or that the spec gives no role: an
/// unknown tensor means that the model computes something else than the spec says.
result<decoder_weights> load_weights(gpu::device& dev, const model_spec& spec,
                                     const checkpoint& weights, gpu::compute_type compute,
                                     const std::function<void(double)>& progress);

} // namespace twill::models
