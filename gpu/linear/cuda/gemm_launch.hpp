// Launches the kernels that multiply packed weights: chooses a kernel, that of gemm.hpp or of
// prefill_gemm.hpp, and the shape of its blocks. Only CUDA sources may include this header.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "config/base/assert.hpp"
#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/linear/cuda/gemm.hpp"
#include "gpu/linear/cuda/gemm_plan.hpp"
#include "gpu/linear/cuda/prefill_gemm.hpp"

namespace twill::gpu::cuda {

/// The number of blocks that must fit into a multiprocessor at once; the compiler limits the
/// registers of a kernel accordingly. Shared memory holds two blocks on GPUs with 100 KiB per
/// multiprocessor, the smallest amount we support, and three blocks on most GPUs. A warp that
/// multiplies two slices of the columns (Pairs = 2) has twice as many sums, so only half as many
/// blocks are demanded.
template <int Tiles, int Pairs>
inline constexpr int blocks_at_once = Tiles == 1 ? 3 : 2 / Pairs;

template <class Weights, int Tiles, int Pairs>
__global__ void __launch_bounds__(gemm_shape<Weights, Tiles, Pairs>::threads,
                                  blocks_at_once<Tiles, Pairs>)
    gemm_kernel(const __grid_constant__ gemm_args args) {
  gemm<Weights, Tiles, Pairs>{device_ptx{}, args}.run();
}

template <class Weights, int Tiles, int RowWarps>
__global__ void __launch_bounds__(prefill_gemm_shape<Weights, Tiles, RowWarps>::threads, 1)
    prefill_gemm_kernel(const __grid_constant__ gemm_args args) {
  prefill_gemm<Weights, Tiles, RowWarps>{device_ptx{}, args}.run();
}

template <class Weights, int Tiles, int Pairs>
void launch(cudaStream_t stream, const gemm_args& args) {
  using shape = gemm_shape<Weights, Tiles, Pairs>;
  static_assert(shape::shared_bytes <= 48 * 1024, "what every block may have without asking");
  static_assert(2 * (shape::shared_bytes + 1024) <= 100 * 1024);
  gemm_kernel<Weights, Tiles, Pairs><<<static_cast<unsigned>(shape::blocks(args.w, args.m)),
                                       shape::threads, shape::shared_bytes, stream>>>(args);
  detail::count_launch();
}

/// Matrices with at least this many outputs use blocks of two pairs of row panels (64 outputs). A
/// block reads the activations once for both pairs, so they are read half as often. Smaller
/// matrices would have too few such blocks to keep every multiprocessor busy.
inline constexpr std::int64_t outputs_for_two_pairs = 16384;

template <class Shape>
constexpr prefill_block block_of(double cost) {
  return {Shape::outputs, Shape::rows, cost};
}

template <class Weights, int Tiles, int RowWarps>
void launch_prefill(cudaStream_t stream, const gemm_args& args) {
  using shape = prefill_gemm_shape<Weights, Tiles, RowWarps>;
  static_assert(shape::shared_bytes <= 99 * 1024, "what a block may have on every GPU");
  const auto kernel = prefill_gemm_kernel<Weights, Tiles, RowWarps>;
  static const cudaError_t allowed = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shape::shared_bytes);
  // Any other error comes from an earlier kernel, and device::fence() reports it.
  TWILL_ASSERT(allowed != cudaErrorInvalidValue,
               "linear: the GPU must allow 99 KiB of shared memory");
  kernel<<<static_cast<unsigned>(shape::blocks(args.w, args.m)), shape::threads,
           shape::shared_bytes, stream>>>(args);
  detail::count_launch();
}

/// The number of multiprocessors of the GPU. A process uses only one GPU.
inline int multiprocessors() {
  static const int n = [] {
    int count = 1, id = 0;
    cudaGetDevice(&id);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, id);
    return count;
  }();
  return n;
}

template <class Weights>
gemm_form form_of(const gemm_args& args) {
  constexpr int row_warps = Weights::prefill_row_warps;
  return plan_gemm(args.w.rows, args.m, multiprocessors(),
                   block_of<prefill_gemm_shape<Weights, prefill_small_tiles, row_warps>>(
                       Weights::prefill_small_cost),
                   block_of<prefill_gemm_shape<Weights, Weights::prefill_tiles, row_warps>>(1));
}

template <class Weights>
void launch(cudaStream_t stream, const gemm_args& args) {
  constexpr int row_warps = Weights::prefill_row_warps;
  switch (form_of<Weights>(args)) {
  case gemm_form::prefill_small:
    return launch_prefill<Weights, prefill_small_tiles, row_warps>(stream, args);
  case gemm_form::prefill_large:
    return launch_prefill<Weights, Weights::prefill_tiles, row_warps>(stream, args);
  case gemm_form::decode:
    break;
  }
  if (args.m <= gemm_tile)
    launch<Weights, 1, 1>(stream, args);
  else if (args.m <= 2 * gemm_tile)
    launch<Weights, 2, 1>(stream, args);
  else if (Weights::crowded || args.w.rows >= outputs_for_two_pairs)
    launch<Weights, 4, 2>(stream, args);
  else if constexpr (!Weights::crowded)
    launch<Weights, 4, 1>(stream, args);
}

} // namespace twill::gpu::cuda
