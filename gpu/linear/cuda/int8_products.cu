#include "gpu/linear/cuda/int8_products.hpp"

#include <cstddef>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/detail/packed_matrix_impl.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/linear/cuda/gemm_i8.hpp"
#include "gpu/linear/cuda/gemm_launch.hpp"
#include "gpu/linear/cuda/to_8_bits.hpp"

namespace twill::gpu::cuda {

namespace {

__global__ void __launch_bounds__(to_8_bits_threads)
    to_8_bits_kernel(const __grid_constant__ to_8_bits_args args) {
  to_8_bits<device_ptx>{device_ptx{}, args}.run();
}

void multiply(cudaStream_t stream, const codes_out& x, const int8_room& lies, gemm_args& args) {
  args.x = x.codes;
  args.x_stride = args.w.cols;
  args.x_params = {x.params, lies.param_rows};
  with_gemm_i8_weights<device_ptx>(args.w, [&]<class Weights>() { launch<Weights>(stream, args); });
}

} // namespace

std::int64_t int8_scratch_bytes(const detail::packed_view& w, compute_type compute,
                                std::int64_t m) {
  return int8_room(w, m).bytes * (compute == compute_type::int8x2 ? 2 : 1);
}

void run_int8(device& dev, const linear_args& given, compute_type compute, gemm_args& args) {
  const std::int64_t m = given.x.rows();
  const int8_room lies(args.w, m);
  auto* const scratch = static_cast<std::byte*>(
      dev.scratch(static_cast<std::size_t>(int8_scratch_bytes(args.w, compute, m))));
  to_8_bits_args round{};
  round.x = given.x.as<const float>();
  round.x_stride = given.x.row_stride;
  round.order = given.weights->get().column_order();
  round.first = lies.in(scratch);
  if (compute == compute_type::int8x2) round.residual = lies.in(scratch + lies.bytes);
  round.param_rows = lies.param_rows;
  round.m = static_cast<int>(m);
  round.cols = static_cast<int>(args.w.cols);
  round.columns = gemm_i8_columns(args.w);
  const cudaStream_t stream = stream_of(dev.where());
  to_8_bits_kernel<<<static_cast<unsigned>(to_8_bits_blocks(round)), to_8_bits_threads, 0,
                     stream>>>(round);
  detail::count_launch();
  multiply(stream, round.first, lies, args);
  if (compute != compute_type::int8x2) return;
  args = of_residual(args);
  multiply(stream, round.residual, lies, args);
}

} // namespace twill::gpu::cuda
