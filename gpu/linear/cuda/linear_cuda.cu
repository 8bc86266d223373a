// linear()'s CUDA form: products of 4-bit, 8-bit and 16-bit weights with f16 and bf16 activations.
// Few rows go through gemm.hpp and many through prefill_gemm.hpp, with the same bits. Other weights
// and compute types are the portable form's.
#include <cstdint>

#include "config/base/assert.hpp"
#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/linear/cuda/gemm_16.hpp"
#include "gpu/linear/cuda/gemm_plan.hpp"
#include "gpu/linear/cuda/gemm_w4.hpp"
#include "gpu/linear/cuda/gemm_w8.hpp"
#include "gpu/linear/cuda/prefill_gemm.hpp"
#include "gpu/linear/cuda/to_16_bits.hpp"

namespace twill::gpu::cuda {

namespace {

/// Blocks that registers must leave room for on a multiprocessor. Shared memory has room for two in
/// 100 KiB, the smallest that we promise, and for three in most. With two pairs of panels the warps
/// of one block need the registers of two.
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

template <class From, bool Bf16>
__global__ void __launch_bounds__(to_16_bits_threads)
    to_16_bits_kernel(const __grid_constant__ to_16_bits_args args) {
  to_16_bits<From, Bf16, device_ptx>{device_ptx{}, args}.run();
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

/// From as many outputs on, blocks of two pairs of panels are enough to keep every multiprocessor
/// busy: they read the activations half as often.
constexpr std::int64_t outputs_for_two_pairs = 16384;

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
  // Any other failure is of an earlier kernel, and device::fence() reports it.
  TWILL_ASSERT(allowed != cudaErrorInvalidValue,
               "linear: the GPU must allow 99 KiB of shared memory");
  kernel<<<static_cast<unsigned>(shape::blocks(args.w, args.m)), shape::threads,
           shape::shared_bytes, stream>>>(args);
  detail::count_launch();
}

/// Multiprocessors of the GPU: a process has one.
int multiprocessors() {
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

/// Calls f.template operator()<Weights>() for a matrix that supports() took.
template <class F>
void with_weights(const detail::packed_view& w, bool bf16, const F& f) {
  if (w.kind == weight_kind::f16)
    f.template operator()<gemm_f16_weights<device_ptx>>();
  else if (w.kind == weight_kind::bf16)
    f.template operator()<gemm_bf16_weights<device_ptx>>();
  else if (w.kind == weight_kind::grouped_u8)
    bf16 ? with_gemm_w8_weights<device_ptx, true>(w, f)
         : with_gemm_w8_weights<device_ptx, false>(w, f);
  else
    bf16 ? with_gemm_w4_weights<device_ptx, true>(w, f)
         : with_gemm_w4_weights<device_ptx, false>(w, f);
}

template <class From, bool Bf16>
void launch_to_16_bits(cudaStream_t stream, const to_16_bits_args& args) {
  to_16_bits_kernel<From, Bf16>
      <<<static_cast<unsigned>(to_16_bits_blocks(args)), to_16_bits_threads, 0, stream>>>(args);
  detail::count_launch();
}

bool supports(const detail::packed_view& w, compute_type asked) {
  if (w.cols % gemm_step != 0) return false;
  const compute_type compute = detail::effective_compute(w, asked);
  switch (w.kind) {
  case weight_kind::f16:
    return compute == compute_type::f16;
  case weight_kind::bf16:
    return compute == compute_type::bf16;
  case weight_kind::grouped_u4:
    return (compute == compute_type::f16 || compute == compute_type::bf16) && gemm_w4_takes(w);
  case weight_kind::grouped_u8:
    return (compute == compute_type::f16 || compute == compute_type::bf16) && gemm_w8_takes(w);
  default:
    return false;
  }
}

/// Room for activations that are not what the kernels read.
std::int64_t scratch_bytes(const device&, const detail::packed_view& w, bool, compute_type,
                           std::int64_t m) {
  return m * w.cols * 2;
}

/// Points `args` to x itself where the kernels can read it, else to a copy in scratch memory.
void find_rows(device& dev, const linear_args& given, bool bf16, gemm_args& args) {
  const std::int32_t* order = given.weights->get().column_order();
  args.x = given.x.as<const std::uint16_t>();
  args.x_stride = given.x.row_stride;
  const bool halves = given.x.type != dtype::f32;
  if (halves && order == nullptr && args.x_stride % 8 == 0 &&
      reinterpret_cast<std::uintptr_t>(args.x) % 16 == 0)
    return;
  const std::int64_t m = given.x.rows();
  to_16_bits_args convert{};
  convert.x = args.x;
  convert.x_stride = args.x_stride;
  convert.order = order;
  convert.to =
      static_cast<std::uint16_t*>(dev.scratch(static_cast<std::size_t>(m * args.w.cols * 2)));
  convert.m = static_cast<int>(m);
  convert.cols = static_cast<int>(args.w.cols);
  const cudaStream_t stream = stream_of(dev.where());
  if (halves)
    launch_to_16_bits<std::uint16_t, false>(stream, convert);
  else if (bf16)
    launch_to_16_bits<float, true>(stream, convert);
  else
    launch_to_16_bits<float, false>(stream, convert);
  args.x = convert.to;
  args.x_stride = args.w.cols;
}

/// All but the activations.
gemm_args args_of(const linear_args& given) {
  gemm_args args{};
  args.w = given.weights->get().view;
  args.m = static_cast<int>(given.x.rows());
  args.bias = given.bias;
  args.out = given.out.as<float>();
  args.out_stride = given.out.row_stride;
  args.accumulate = given.accumulate;
  return args;
}

void run(device& dev, const linear_args& given, gemm_args& args) {
  const bool bf16 = detail::effective_compute(args.w, given.compute) == compute_type::bf16;
  find_rows(dev, given, bf16, args);
  const cudaStream_t stream = stream_of(dev.where());
  with_weights(args.w, bf16, [&]<class Weights>() { launch<Weights>(stream, args); });
}

void run(device& dev, const linear_args& given) {
  gemm_args args = args_of(given);
  run(dev, given, args);
}

/// The kernel for few rows has no such form: its product is small.
bool run_silu_mul(device& dev, const linear_args& given, tensor_ref out) {
  gemm_args args = args_of(given);
  if (args.w.rows % (2 * gemm_outputs) != 0) return false;
  const bool bf16 = detail::effective_compute(args.w, given.compute) == compute_type::bf16;
  gemm_form form = gemm_form::decode;
  with_weights(args.w, bf16, [&]<class Weights>() { form = form_of<Weights>(args); });
  if (form == gemm_form::decode) return false;
  args.gated = {out.data, out.type, out.row_stride};
  run(dev, given, args);
  return true;
}

} // namespace

constinit const detail::linear_backend linear{supports, scratch_bytes, run, run_silu_mul, true};

} // namespace twill::gpu::cuda
