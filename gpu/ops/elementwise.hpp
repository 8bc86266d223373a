// Row-wise ops of a decoder: norms, gated activations, row gathers. All f32, rows may be strided.
#pragma once

#include "gpu/device.hpp"

namespace twill::gpu {

/// out = x / rms(x) * weight, per row. With `residual` the row is first residual += x, and
/// residual is what is normalised (x may then equal out). Sums in f32, fixed order.
void rms_norm(device& dev, tensor_ref x,       // (m, n)
              const float* weight,             // (n) device
              float epsilon, tensor_ref out,   // (m, n)
              tensor_ref* residual = nullptr); // (m, n)

/// out[i] = silu(gate_up[i]) * gate_up[i + n]: the gate half, then the up half of each row.
void silu_mul(device& dev, tensor_ref gate_up, // (m, 2n)
              tensor_ref out);                 // (m, n)

/// out[i] = x[rows[i]].
void gather_rows(device& dev, tensor_ref x, const std::int32_t* rows, // (k) device
                 tensor_ref out);                                     // (k, n)

} // namespace twill::gpu
