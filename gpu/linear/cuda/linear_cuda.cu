// linear()'s CUDA form: a GEMV for matrices of grouped 4-bit weights, in f32 and bf16. Products are
// f32 in both. More rows than four go through it four at a time, so that a row's bits are the same
// in any batch.
#include <cstdint>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/linear/cuda/gemv_w4.hpp"

namespace twill::gpu::cuda {

namespace {

/// Blocks that a multiprocessor of 100 KiB of shared memory, the smallest that we promise, holds at
/// once. Registers must leave room for them, and need not for more.
constexpr int blocks_at_once(int rows) {
  const int by_shared = 100 * 1024 / (gemv_w4_shared_bytes(rows) + 1024);
  return by_shared < 8 ? by_shared : 8;
}

template <int Rows>
__global__ void __launch_bounds__(gemv_w4_threads, blocks_at_once(Rows))
    gemv_w4_kernel(const gemv_w4_args args) {
  gemv_w4<Rows, device_ptx>{device_ptx{}, args}.run();
}

template <int Rows>
void launch(cudaStream_t stream, const gemv_w4_args& args) {
  gemv_w4_kernel<Rows><<<static_cast<unsigned>(args.w.panels), gemv_w4_threads,
                         gemv_w4_shared_bytes(Rows), stream>>>(args);
  detail::count_launch();
}

bool supports(const detail::packed_view& w, compute_type asked) {
  return w.kind == weight_kind::grouped_u4 &&
         (asked == compute_type::f32 || asked == compute_type::bf16);
}

std::int64_t scratch_bytes(const device&, const detail::packed_view&, bool, compute_type,
                           std::int64_t) {
  return 0;
}

void run(device& dev, const linear_args& given) {
  gemv_w4_args args{};
  args.w = given.weights->get().view;
  args.x = given.x.as<const float>();
  args.x_stride = given.x.row_stride;
  args.order = given.weights->get().column_order();
  args.bias = given.bias;
  args.out = given.out.as<float>();
  args.out_stride = given.out.row_stride;
  args.accumulate = given.accumulate;
  args.vectors = args.order == nullptr && args.x_stride % 4 == 0 &&
                 reinterpret_cast<std::uintptr_t>(args.x) % 16 == 0;
  const cudaStream_t stream = stream_of(dev.where());
  for (std::int64_t row = 0; row < given.x.rows(); row += gemv_w4_most_rows) {
    switch (given.x.rows() - row) {
    case 1:
      launch<1>(stream, args);
      break;
    case 2:
      launch<2>(stream, args);
      break;
    case 3:
      launch<3>(stream, args);
      break;
    default:
      launch<4>(stream, args);
    }
    args.x += gemv_w4_most_rows * args.x_stride;
    args.out += gemv_w4_most_rows * args.out_stride;
  }
}

} // namespace

constinit const detail::linear_backend linear{supports, scratch_bytes, run, nullptr};

} // namespace twill::gpu::cuda
