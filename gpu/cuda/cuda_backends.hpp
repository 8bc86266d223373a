// Declarations that the CUDA implementations of the ops share: the tables of their functions, and
// the stream of a device. Only .cu files may include this header.
#pragma once

#include <cstdint>
#include <functional>

#include <cuda_runtime.h>

namespace twill::gpu {
class device;
struct launch_times;
struct timing_plan;
} // namespace twill::gpu
namespace twill::gpu::detail {
struct attention_backend;
struct linear_backend;
struct op_backends;
struct probe_backend;
class space;
} // namespace twill::gpu::detail

namespace twill::gpu::cuda {

extern const detail::attention_backend attention; ///< attention/cuda/attention_cuda.cu
extern const detail::linear_backend linear;       ///< linear/cuda/linear_cuda.cu
extern const detail::probe_backend probe;         ///< probe_cuda.cu

/// The tables of a GPU's ops: CUDA's own implementations where they exist, else the portable ones.
/// Defined in cuda_ops.cu.
const detail::op_backends& backends();

/// time_launches() and cache_bytes() of gpu/launch_timer.hpp. // launch_timer_cuda.cu
launch_times timed_launches(device& dev, const timing_plan& plan, const std::function<void()>& f);
std::int64_t l2_bytes(const device& dev);

/// The stream that a GPU's ops are launched on.
cudaStream_t stream_of(const detail::space& gpu);

} // namespace twill::gpu::cuda
