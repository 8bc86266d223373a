// Activations, column scales and row gathers of a decoder. Tensors are f32 and their rows may be
// strided. Where a comment allows f16 or bf16 for `out`, each value is rounded to that type once.
//
// Executor thread only. A row's result depends on that row alone, bit for bit. Shapes that do not
// fit stop the process, so callers check shapes that come from files first.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"

namespace twill::gpu {

/// out[i] = silu(gate_up[i]) * gate_up[i + n]: a row has the gate half first, then the up half.
void silu_mul(device& dev, tensor_ref gate_up, // (m, 2n)
              tensor_ref out);                 // (m, n) f32, f16 or bf16

enum class activation : std::uint8_t {
  relu,
  gelu,      ///< x * Phi(x), by the error function
  gelu_tanh, ///< gelu approximated by tanh (Hendrycks and Gimpel 2016)
  silu,      ///< x * sigmoid(x)
};

/// out = kind(x). `out` may be x itself if it is f32.
void activate(device& dev, tensor_ref x, // (m, n)
              activation kind,
              tensor_ref out); // (m, n) f32, f16 or bf16

/// x = kind(x), in place.
inline void activate(device& dev, tensor_ref x, activation kind) { // (m, n)
  activate(dev, x, kind, x);
}

/// x[r][j] *= factors[j], in place. A language-model head whose weight rows are normalised scales
/// its logits with this op.
void scale_columns(device& dev, tensor_ref x, // (m, n)
                   const float* factors);     // (n) device

/// out[i] = x[rows[i]]. Both have one type: f32, f16 or bf16.
void gather_rows(device& dev, tensor_ref x, const std::int32_t* rows, // (k) device
                 tensor_ref out);                                     // (k, n) of x's type

} // namespace twill::gpu
