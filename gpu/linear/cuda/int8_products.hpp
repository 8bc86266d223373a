// Products of 8-bit weights with int8 activations on a GPU: what linear_cuda.cu calls for the
// compute types int8 and int8x2. Executor thread only.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"
#include "gpu/linear/linear.hpp"

namespace twill::gpu::cuda {

/// Scratch memory that run_int8() takes for up to `m` rows.
std::int64_t int8_scratch_bytes(const detail::packed_view& w, compute_type compute, std::int64_t m);

/// Rounds the activations of `given` to int8 in scratch memory and multiplies them by weights that
/// gemm_i8_takes(). args: all but the activations. int8x2 is a product of the residual on top,
/// which is added to the first: with neither bias nor gated output of its own.
void run_int8(device& dev, const linear_args& given, compute_type compute, gemm_args& args);

} // namespace twill::gpu::cuda
