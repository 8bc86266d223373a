// Implements the class `space` (gpu/detail/space.hpp), which holds a GPU's memory and runs its
// kernels, with the CUDA runtime alone. The daemon's implementation, gpu/cuda/cuda_device.cu, also
// needs Kokkos. The table with which this class runs ops (gpu/detail/op_backends.hpp) has only
// kernels written in CUDA and no portable implementations.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/cuda/stream_space.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/detail/sampling_backend.hpp"
#include "gpu/detail/space.hpp"

namespace twill::gpu {

namespace {

using cuda::outcome_of;

/// Ops without kernels of CUDA's own, which no family may call.
constinit const detail::attention_backend no_attention{};
constinit const detail::sampling_backend no_sampling{};
constinit const detail::rows_backend no_rows{};

constexpr detail::op_backends table{
    {&cuda::linear, &no_attention, &no_sampling, &no_rows, &cuda::probe}, &table};

class raw_space final : public cuda::stream_space {
public:
  using stream_space::stream_space;

  const detail::op_backends& ops() const override { return table; }
  const void* instance() const override { return nullptr; }
};

} // namespace

bool detail::cuda_is_present() {
  return true;
}

result<std::unique_ptr<detail::space>> detail::open_cuda_space(std::int32_t id, std::int32_t) {
  int count = 0;
  if (const cudaError_t counted = cudaGetDeviceCount(&count); counted != cudaSuccess || count == 0)
    return failure{errc::not_built,
                   std::string("no GPU: CUDA says \"") + cudaGetErrorString(counted) + "\""};
  cudaDeviceProp properties{};
  std::size_t free = 0, total = 0;
  cudaStream_t stream = nullptr;
  for (const auto& done :
       {outcome_of(cudaSetDevice(id), "choosing the GPU"),
        outcome_of(cudaGetDeviceProperties(&properties, id), "asking its name"),
        outcome_of(cudaMemGetInfo(&free, &total), "asking its memory"),
        outcome_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream")})
    if (!done.ok()) return done.error();
  return result<std::unique_ptr<space>>(std::make_unique<raw_space>(
      space_facts{.kind = "cuda",
                  .name = properties.name,
                  .backend = "CUDA",
                  .memory_bytes = static_cast<std::int64_t>(free) - (std::int64_t{512} << 20),
                  .is_host = false,
                  .multiplies_bf16 = properties.major >= 8,
                  .multiplies_f16 = true,
                  .half_activations = true},
      stream));
}

/// Without one, no kernel of CUDA's own could be checked.
std::unique_ptr<detail::space> detail::open_host_space(std::int32_t) {
  throw std::logic_error("gpu-kernels computes on a GPU alone");
}

} // namespace twill::gpu
