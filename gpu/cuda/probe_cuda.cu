// The CUDA implementation of peak_rates.hpp, which measures how fast the GPU computes, reads and
// copies.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/cuda/peak_loops.hpp"
#include "gpu/cuda/read_loop.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/detail/space.hpp"

namespace twill::gpu::cuda {

namespace {

constexpr int blocks_at_once = 4; ///< per multiprocessor; registers are limited accordingly

__global__ void __launch_bounds__(peak_threads, blocks_at_once) peak_mma(const peak_args args) {
  peak_loop<device_ptx>{device_ptx{}, args}.mma();
}
__global__ void __launch_bounds__(peak_threads, blocks_at_once) peak_int8(const peak_args args) {
  peak_loop<device_ptx>{device_ptx{}, args}.mma_int8();
}
__global__ void __launch_bounds__(peak_threads, blocks_at_once) peak_fma(const peak_args args) {
  peak_loop<device_ptx>{device_ptx{}, args}.fma();
}

__global__ void __launch_bounds__(read_threads, blocks_at_once) read_all(const read_args args) {
  read_loop<device_ptx>{device_ptx{}, args}.run();
}

/// The number of blocks that fill all multiprocessors of the GPU.
unsigned full_grid() {
  int multiprocessors = 0, id = 0;
  cudaGetDevice(&id);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, id);
  return static_cast<unsigned>(multiprocessors * blocks_at_once);
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

/// The rate of the fastest of a few runs, since the GPU's clock rises during the first runs.
double rate_of(loop kernel, double operations_of_round, device& dev) {
  constexpr std::int32_t rounds = 1 << 14;
  constexpr int runs = 8;
  const unsigned blocks = full_grid();
  auto memory = dev.allocate(std::size_t{blocks} * peak_threads * sizeof(float), "peak_rates");
  cudaEvent_t began = nullptr, ended = nullptr;
  double best = 0;
  if (memory.ok() && cudaEventCreate(&began) == cudaSuccess &&
      cudaEventCreate(&ended) == cudaSuccess) {
    const peak_args args{0x3c003c00U, 0x01010101U, 0.5F,
                         1.0F,        rounds,      static_cast<float*>(memory.value().data())};
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

/// Begins to read, and returns the place and the number of the threads' sums.
read_args begun_read(device& dev, const std::uint64_t* words, std::int64_t n) {
  const unsigned blocks = full_grid();
  const std::size_t sums = std::size_t{blocks} * read_threads;
  const read_args args{reinterpret_cast<const words4*>(words), n / 2, blocks,
                       static_cast<std::uint64_t*>(dev.scratch(sums * sizeof(std::uint64_t)))};
  read_all<<<blocks, read_threads, 0, stream_of(dev.where())>>>(args);
  return args;
}

void begin_read(device& dev, const std::uint64_t* words, std::int64_t n) {
  begun_read(dev, words, n);
}

std::uint64_t read(device& dev, const std::uint64_t* words, std::int64_t n) {
  const read_args args = begun_read(dev, words, n);
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(args.blocks) * read_threads);
  dev.download(sums.data(), args.sums, sums.size() * sizeof(std::uint64_t));
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

/// If CUDA refuses the copy, the next fence reports the error.
void copy(device& dev, void* to, const void* from, std::size_t bytes) {
  cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(dev.where()));
}

/// Tensor cores have one speed for f16 and bf16 on all generations that this build is for.
peak_rates peaks(device& dev) {
  return {rate_of(peak_fma, peak_fma_operations, dev), rate_of(peak_mma, peak_mma_operations, dev),
          rate_of(peak_int8, peak_int8_operations, dev)};
}

} // namespace

constinit const detail::probe_backend probe{read,       peaks,          copy,
                                            begin_read, timed_launches, l2_bytes};

} // namespace twill::gpu::cuda
