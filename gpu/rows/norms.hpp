// Norms of a decoder, row by row or head by head. Tensors are f32 and their rows may be strided.
// `out` may also be f16 or bf16; each value is rounded to that type once.
//
// Executor thread only. A row's result depends on that row alone, bit for bit. Shapes that do not
// fit stop the process, so callers check shapes that come from files first.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"

namespace twill::gpu {

/// out = x / rms(x) * weight, per row. With `residual`, the decoder's residual stream, the op first
/// computes residual += x and then normalises residual instead of x; x may then be the same tensor
/// as an f32 `out`. Sums are f32, in a fixed order.
void rms_norm(device& dev, tensor_ref x,       // (m, n)
              const float* weight,             // (n) device
              float epsilon, tensor_ref out,   // (m, n)
              tensor_ref* residual = nullptr); // (m, n)

/// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias, per row; x may be the same
/// tensor as an f32 `out`.
void layer_norm(device& dev, tensor_ref x,      // (m, n)
                const float* weight,            // (n) device
                const float* bias,              // (n) device, or null
                float epsilon, tensor_ref out); // (m, n)

/// Applies rms_norm to each head of each row separately, in place; all heads share one weight.
void head_norm(device& dev, tensor_ref x,                 // (m, n_heads * head_dim)
               std::int32_t n_heads, const float* weight, // (head_dim) device
               float epsilon);

} // namespace twill::gpu
