// Rotary position embedding, and the store of a step's keys and values into paged KV.
//
// Executor thread only. A row's result depends on that row alone.
#pragma once

#include <cstdint>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/device.hpp"
#include "gpu/ragged.hpp"

namespace twill::gpu {

enum class rope_kind : std::uint8_t {
  none,
  half_split,  ///< pairs (i, i + rotary_dim / 2): Hugging Face's Llama order
  interleaved, ///< pairs (2i, 2i + 1): GGUF's Llama order, ChatGLM
};

/// Computes magnitude * cos and magnitude * sin of position * inv_freq for every row of a step. All
/// layers share the results, so the op runs once per step.
void rope_angles(device& dev, const ragged_batch& batch,
                 const float* inv_freq,                   // (rotary_dim / 2) device
                 std::int32_t rotary_dim, tensor_ref cos, // (n_tokens, rotary_dim / 2) f32
                 tensor_ref sin,                          // (n_tokens, rotary_dim / 2) f32
                 float magnitude = 1);

struct rope_store_args {
  tensor_ref q; // (n_tokens, n_heads * head_dim) f32, rotated in place
  tensor_ref k; // (n_tokens, n_kv_heads * head_dim) f32, rotated, then written to `kv`
  tensor_ref v; // (n_tokens, n_kv_heads * head_dim) f32, written to `kv`
  std::int32_t n_heads = 0;
  rope_kind rope = rope_kind::none;
  std::int32_t rotary_dim = 0; ///< leading dimensions of each head that rotate; even
  tensor_ref cos, sin;         // (n_tokens, rotary_dim / 2) f32; unused for none
  kv_layer kv;
  /// Query rows at positions p with p + 1 > log_n_length are multiplied by ln(p + 1) /
  /// ln(log_n_length) (Qwen v1's log-n attention); 0: none.
  std::int32_t log_n_length = 0;
};

/// Rotates q and k, and stores this step's keys and values in the KV blocks of their positions.
void rope_and_store(device& dev, const ragged_batch& batch, const rope_store_args& args);

} // namespace twill::gpu
