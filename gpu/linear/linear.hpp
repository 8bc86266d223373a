// Linear layers: out = x * W^T (+ bias), over dense or grouped-quantised weights.
//
// The order of a sum does not depend on the number of rows of x, on how a prompt is cut into
// chunks, or on the thread count: a row's result is bit-identical alone and in any batch, in every
// compute type. Executor thread only.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "gpu/linear/weight_kind.hpp"

namespace twill::gpu {

/// The largest number of bytes of device::scratch() that linear() takes for up to `m` rows of x and
/// a matrix packed from `source`; 0 for a source that pack() refuses.
std::int64_t linear_scratch_bytes(const device& dev, const weight_source& source,
                                  compute_type compute, std::int64_t m);

struct linear_args {
  /// The activations, in f32. With compute f16 or bf16 they may also have that type, rounded as the
  /// product would round them, so that the bits of the result are the same. // (m, cols) rows may
  /// be strided
  tensor_ref x;
  const packed_matrix* weights; // (rows, cols)
  const float* bias = nullptr;  // (rows) or null
  tensor_ref out;               // (m, rows) f32, rows may be strided
  bool accumulate = false;      ///< out += instead of out = (the residual add)
  compute_type compute = compute_type::f32;
  /// Used by int8x2 on the host only: weight rows below this index (rounded down to a multiple of
  /// 16) are multiplied without the residual of the activations (the error of rounding them), as in
  /// int8.
  std::int64_t residual_from = 0;
  /// Weights that the next linear layer will read, or null. Idle compute threads prefetch them.
  const packed_matrix* next = nullptr;
};

void linear(device& dev, const linear_args& args);

/// Computes linear() and then silu_mul() into `out`, with the bits that the two ops give. The first
/// half of the weight rows is the gate projection and the second half the up projection. args.out
/// is workspace for the product with both halves; its values are unspecified afterwards. args.bias
/// must be null and args.accumulate false.
void linear_silu_mul(device& dev, const linear_args& args, tensor_ref out); // (m, rows / 2)

} // namespace twill::gpu
