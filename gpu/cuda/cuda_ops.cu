// The table of ops of a GPU.
#include "gpu/attention/portable/attention_portable.hpp"
#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/linear/portable/linear_portable.hpp"
#include "gpu/rows/portable/rows_portable.hpp"
#include "gpu/sampling/portable/sampling_portable.hpp"

namespace twill::gpu::cuda {

namespace {

using on_gpu = detail::launcher<Kokkos::Cuda>;

constinit const detail::linear_backend portable_linear = detail::linear_portable<on_gpu>::table;
constinit const detail::attention_backend portable_attention =
    detail::attention_portable<on_gpu>::table;
constinit const detail::sampling_backend sampling = detail::sampling_portable<on_gpu>::table;
constinit const detail::rows_backend rows = detail::rows_portable<on_gpu>::table;

constexpr detail::op_backends portable{
    {&portable_linear, &portable_attention, &sampling, &rows, &probe}, &portable};
/// The tables that have CUDA kernels of their own replace the portable tables.
constexpr detail::op_backends own{{&linear, &attention, &sampling, &rows, &probe}, &portable};

} // namespace

const detail::op_backends& backends() {
  return own;
}

} // namespace twill::gpu::cuda
