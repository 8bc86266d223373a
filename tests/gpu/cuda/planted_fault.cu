#include "tests/gpu/cuda/planted_fault.hpp"

#include <cstdint>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/launches.hpp"

namespace twill::test {

namespace {

__global__ void store_at(float* at) {
  *at = 1;
}

} // namespace

void plant_illegal_address(gpu::device& dev) {
  constexpr std::uintptr_t unmapped = 64; // page 0 is never mapped
  store_at<<<1, 1, 0, gpu::cuda::stream_of(dev.where())>>>(reinterpret_cast<float*>(unmapped));
  gpu::detail::count_launch();
}

} // namespace twill::test
