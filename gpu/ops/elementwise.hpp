// Row-wise ops of a decoder: norms, activations, row gathers. All f32, rows may be strided.
//
// Executor thread only. A row's result depends on that row alone, bit for bit. Shapes that do not
// fit stop the process: callers check what files say before.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"

namespace twill::gpu {

/// out = x / rms(x) * weight, per row. With `residual` the row is first residual += x, and
/// residual is what is normalised (x may then equal out). Sums in f32, fixed order.
void rms_norm(device& dev, tensor_ref x,       // (m, n)
              const float* weight,             // (n) device
              float epsilon, tensor_ref out,   // (m, n)
              tensor_ref* residual = nullptr); // (m, n)

/// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias, per row; x may equal out.
void layer_norm(device& dev, tensor_ref x,      // (m, n)
                const float* weight,            // (n) device
                const float* bias,              // (n) device, or null
                float epsilon, tensor_ref out); // (m, n)

/// rms_norm of every head apart, in place: one weight for all heads.
void head_norm(device& dev, tensor_ref x,                 // (m, n_heads * head_dim)
               std::int32_t n_heads, const float* weight, // (head_dim) device
               float epsilon);

/// out[i] = silu(gate_up[i]) * gate_up[i + n]: the gate half, then the up half of each row.
void silu_mul(device& dev, tensor_ref gate_up, // (m, 2n)
              tensor_ref out);                 // (m, n)

enum class activation : std::uint8_t {
  relu,
  gelu,      ///< x * Phi(x), by the error function
  gelu_tanh, ///< its approximation by tanh (Hendrycks and Gimpel 2016)
  silu,      ///< x * sigmoid(x)
};

/// x = kind(x), in place.
void activate(device& dev, tensor_ref x, // (m, n)
              activation kind);

/// x[r][j] *= factors[j], in place: a head whose rows are normalised scales its logits instead.
void scale_columns(device& dev, tensor_ref x, // (m, n)
                   const float* factors);     // (n) device

/// out[i] = x[rows[i]].
void gather_rows(device& dev, tensor_ref x, const std::int32_t* rows, // (k) device
                 tensor_ref out);                                     // (k, n)

} // namespace twill::gpu
