// Norms of a decoder, row by row or head by head. All f32, rows may be strided; `out` may also be
// f16 or bf16, to which each value is rounded once.
//
// Executor thread only. A row's result depends on that row alone, bit for bit. Shapes that do not
// fit stop the process: callers check what files say before.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"

namespace twill::gpu {

/// out = x / rms(x) * weight, per row. With `residual` the row is first residual += x, and
/// residual is what is normalised (x may then equal an out of f32). Sums in f32, fixed order.
void rms_norm(device& dev, tensor_ref x,       // (m, n)
              const float* weight,             // (n) device
              float epsilon, tensor_ref out,   // (m, n)
              tensor_ref* residual = nullptr); // (m, n)

/// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias, per row; x may equal an out
/// of f32.
void layer_norm(device& dev, tensor_ref x,      // (m, n)
                const float* weight,            // (n) device
                const float* bias,              // (n) device, or null
                float epsilon, tensor_ref out); // (m, n)

/// rms_norm of each head by itself, in place; all heads share one weight.
void head_norm(device& dev, tensor_ref x,                 // (m, n_heads * head_dim)
               std::int32_t n_heads, const float* weight, // (head_dim) device
               float epsilon);

} // namespace twill::gpu
