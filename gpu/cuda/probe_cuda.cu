// The CUDA form of peak_rates.hpp: how fast the GPU multiplies and adds.
#include <algorithm>
#include <cstdint>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/cuda/peak_loops.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/detail/space.hpp"

namespace twill::gpu::cuda {

namespace {

constexpr int blocks_at_once = 4; ///< of a multiprocessor; registers leave room for them

__global__ void __launch_bounds__(peak_threads, blocks_at_once) peak_mma(const peak_args args) {
  peak_loop<device_ptx>{device_ptx{}, args}.mma();
}
__global__ void __launch_bounds__(peak_threads, blocks_at_once) peak_fma(const peak_args args) {
  peak_loop<device_ptx>{device_ptx{}, args}.fma();
}

using loop = void (*)(peak_args);

/// Seconds of one run on the stream; 0 where CUDA fails.
double seconds_of(loop kernel, unsigned blocks, const peak_args& args, cudaStream_t stream,
                  cudaEvent_t began, cudaEvent_t ended) {
  float ms = 0;
  cudaEventRecord(began, stream);
  kernel<<<blocks, peak_threads, 0, stream>>>(args);
  cudaEventRecord(ended, stream);
  if (cudaGetLastError() != cudaSuccess || cudaEventSynchronize(ended) != cudaSuccess) return 0;
  return cudaEventElapsedTime(&ms, began, ended) == cudaSuccess ? 1e-3 * ms : 0;
}

/// The rate of the fastest of a few runs: the first ones raise the clock.
double rate_of(loop kernel, double operations_of_round, device& dev) {
  constexpr std::int32_t rounds = 1 << 14;
  constexpr int runs = 8;
  int multiprocessors = 0, id = 0;
  cudaGetDevice(&id);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, id);
  const auto blocks = static_cast<unsigned>(multiprocessors * blocks_at_once);
  auto memory = dev.allocate(std::size_t{blocks} * peak_threads * sizeof(float), "peak_rates");
  cudaEvent_t began = nullptr, ended = nullptr;
  double best = 0;
  if (memory.ok() && cudaEventCreate(&began) == cudaSuccess &&
      cudaEventCreate(&ended) == cudaSuccess) {
    const peak_args args{0x3c003c00U, 0.5F, 1.0F, rounds,
                         static_cast<float*>(memory.value().data())};
    const double operations = operations_of_round * rounds * blocks * peak_threads;
    for (int run = 0; run < runs; ++run)
      if (const double s = seconds_of(kernel, blocks, args, stream_of(dev.where()), began, ended);
          s > 0)
        best = std::max(best, operations / s);
  }
  if (began != nullptr) cudaEventDestroy(began);
  if (ended != nullptr) cudaEventDestroy(ended);
  return best;
}

} // namespace

/// Tensor cores have one speed for f16 and bf16 on all generations that this build is for. Nothing
/// here issues their int8.
peak_rates measured_peaks(device& dev) {
  return {rate_of(peak_fma, peak_fma_operations, dev), rate_of(peak_mma, peak_mma_operations, dev),
          0};
}

} // namespace twill::gpu::cuda
