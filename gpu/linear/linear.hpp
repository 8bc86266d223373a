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

/// The most of device::scratch() that products of up to `m` rows with a matrix packed from `source`
/// take; 0 for what pack() refuses.
std::int64_t linear_scratch_bytes(const device& dev, const weight_source& source,
                                  compute_type compute, std::int64_t m);

struct linear_args {
  tensor_ref x;                 // (m, cols) f32, rows may be strided
  const packed_matrix* weights; // (rows, cols)
  const float* bias = nullptr;  // (rows) or null
  tensor_ref out;               // (m, rows) f32, rows may be strided
  bool accumulate = false;      ///< out += instead of out = (the residual add)
  compute_type compute = compute_type::f32;
  /// int8x2 on the host: rows of the weights before this one (rounded down to a multiple of 16) are
  /// multiplied with the high digits alone, as in int8.
  std::int64_t second_digit_from = 0;
  /// Weights that the next linear layer will read, or null: threads that wait fetch them ahead.
  const packed_matrix* next = nullptr;
};

void linear(device& dev, const linear_args& args);

/// silu_mul() of linear(), for weights whose first half of rows is the gate and whose second half
/// is multiplied by it: the bits of the two ops. args.out is room for the product of both halves,
/// which is left with any values; no bias, no accumulate.
void linear_silu_mul(device& dev, const linear_args& args, tensor_ref out); // (m, rows / 2)

} // namespace twill::gpu
