// The CUDA implementation of linear(): products of 4-bit, 8-bit and 16-bit weights with f16 and
// bf16 activations, and of 8-bit weights with int8 activations. gemm.hpp multiplies few rows and
// prefill_gemm.hpp many rows, with the same bits. The portable implementation computes other
// weights and compute types.
#include <cstdint>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/linear/cuda/gemm_16.hpp"
#include "gpu/linear/cuda/gemm_i8.hpp"
#include "gpu/linear/cuda/gemm_launch.hpp"
#include "gpu/linear/cuda/gemm_w4.hpp"
#include "gpu/linear/cuda/gemm_w8.hpp"
#include "gpu/linear/cuda/int8_products.hpp"
#include "gpu/linear/cuda/to_16_bits.hpp"

namespace twill::gpu::cuda {

namespace {

template <class From, bool Bf16>
__global__ void __launch_bounds__(to_16_bits_threads)
    to_16_bits_kernel(const __grid_constant__ to_16_bits_args args) {
  to_16_bits<From, Bf16, device_ptx>{device_ptx{}, args}.run();
}

/// Calls f.template operator()<Weights>() with the struct for a matrix that supports() accepts.
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
  if (detail::is_int8(compute)) return gemm_i8_takes(w);
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

/// Scratch memory for activations that have to be converted before the kernels can read them.
std::int64_t scratch_bytes(const device&, const detail::packed_view& w, bool, compute_type asked,
                           std::int64_t m) {
  const compute_type compute = detail::effective_compute(w, asked);
  return detail::is_int8(compute) ? int8_scratch_bytes(w, compute, m) : m * w.cols * 2;
}

/// Sets the activations of `args` to x itself where the kernels can read x, else to a converted
/// copy in scratch memory.
void find_rows(device& dev, const linear_args& given, bool bf16, gemm_args& args) {
  const std::int32_t* order = given.weights->get().column_order();
  args.x = given.x.data;
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

/// The arguments of the kernels except for the activations.
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
  const compute_type compute = detail::effective_compute(args.w, given.compute);
  if (detail::is_int8(compute)) return run_int8(dev, given, compute, args);
  const bool bf16 = compute == compute_type::bf16;
  find_rows(dev, given, bf16, args);
  const cudaStream_t stream = stream_of(dev.where());
  with_weights(args.w, bf16, [&]<class Weights>() { launch<Weights>(stream, args); });
}

void run(device& dev, const linear_args& given) {
  gemm_args args = args_of(given);
  run(dev, given, args);
}

/// Returns false where the product cannot be fused with silu_mul(): for matrices whose halves are
/// not whole pairs of row panels (32 rows), for int8x2, and for the few rows that gemm.hpp
/// multiplies, which has no fused kernel because its product is small.
bool run_silu_mul(device& dev, const linear_args& given, tensor_ref out) {
  gemm_args args = args_of(given);
  if (args.w.rows % (2 * gemm_outputs) != 0) return false;
  const compute_type compute = detail::effective_compute(args.w, given.compute);
  if (compute == compute_type::int8x2)
    return false; // the second product of int8x2 must be added before silu_mul()
  gemm_form form = gemm_form::decode;
  const auto find_form = [&]<class Weights>() { form = form_of<Weights>(args); };
  if (compute == compute_type::int8)
    with_gemm_i8_weights<device_ptx>(args.w, find_form);
  else
    with_weights(args.w, compute == compute_type::bf16, find_form);
  if (form == gemm_form::decode) return false;
  args.gated = {out.data, out.type, out.row_stride};
  run(dev, given, args);
  return true;
}

} // namespace

constinit const detail::linear_backend linear{supports, scratch_bytes, run, run_silu_mul, true};

} // namespace twill::gpu::cuda
