// What the CUDA forms of the ops share: their tables, and the stream of a device. For .cu files.
#pragma once

#include <cuda_runtime.h>

namespace twill::gpu {
class device;
struct peak_rates;
} // namespace twill::gpu
namespace twill::gpu::detail {
struct linear_backend;
struct op_backends;
class space;
} // namespace twill::gpu::detail

namespace twill::gpu::cuda {

extern const detail::linear_backend linear; ///< linear/cuda/linear_cuda.cu

/// The portable forms on the GPU, and CUDA's own where there are any. // cuda_ops.cu
const detail::op_backends& backends();

/// Multiply-adds per second that the GPU reached in registers. // probe_cuda.cu
peak_rates measured_peaks(device& dev);

/// The stream that a GPU's ops are launched on.
cudaStream_t stream_of(const detail::space& gpu);

} // namespace twill::gpu::cuda
