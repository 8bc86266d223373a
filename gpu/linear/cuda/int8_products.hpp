// Products of 8-bit weights with int8 activations on a GPU. linear_cuda.cu calls these functions
// for the compute types int8 and int8x2. Executor thread only.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"
#include "gpu/linear/linear.hpp"

namespace twill::gpu::cuda {

/// Bytes of scratch memory that run_int8() takes for up to `m` rows.
std::int64_t int8_scratch_bytes(const detail::packed_view& w, compute_type compute, std::int64_t m);

/// Rounds the activations of `given` to int8 in scratch memory and multiplies them by weights that
/// gemm_i8_takes() accepts. `args` holds everything but the activations. With int8x2 a second
/// product multiplies the residual (the error of the rounding) and adds to the first product's
/// output; the bias is added once, and a gated output is not supported.
void run_int8(device& dev, const linear_args& given, compute_type compute, gemm_args& args);

} // namespace twill::gpu::cuda
