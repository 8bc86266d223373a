#include "gpu/rows/elementwise.hpp"

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/rows/detail/elementwise_kernels.hpp"

namespace twill::gpu {

using detail::check_matrix;

void silu_mul(device& dev, tensor_ref gate_up, tensor_ref out) {
  check_matrix(gate_up, "silu_mul: gate_up must be (m, 2n) f32");
  check_matrix(out, "silu_mul: out must be (m, n) f32");
  TWILL_ASSERT(gate_up.shape[0] == out.shape[0] && gate_up.shape[1] == 2 * out.shape[1],
               "silu_mul: gate_up must be twice as wide as out");
  const detail::silu_mul_span span{gate_up.as<const float>(), out.as<float>(), out.shape[1],
                                   gate_up.row_stride, out.row_stride};
  detail::run_op<&detail::rows_backend::silu_mul>(dev, span, out.shape[0], out.shape[1]);
}

void activate(device& dev, tensor_ref x, activation kind) {
  check_matrix(x, "activate: x must be (m, n) f32");
  detail::run_op<&detail::rows_backend::activate>(
      dev, detail::activate_span{x.as<float>(), x.row_stride, kind}, x.shape[0], x.shape[1]);
}

void scale_columns(device& dev, tensor_ref x, const float* factors) {
  check_matrix(x, "scale_columns: x must be (m, n) f32");
  detail::run_op<&detail::rows_backend::scale_columns>(
      dev, detail::scale_span{x.as<float>(), factors, x.row_stride}, x.shape[0], x.shape[1]);
}

void gather_rows(device& dev, tensor_ref x, const std::int32_t* rows, tensor_ref out) {
  check_matrix(x, "gather_rows: x must be (m, n) f32");
  check_matrix(out, "gather_rows: out must be (k, n) f32");
  TWILL_ASSERT(x.shape[1] == out.shape[1], "gather_rows: x and out must have the same columns");
  const detail::gather_span span{x.as<const float>(), rows, out.as<float>(), x.row_stride,
                                 out.row_stride};
  detail::run_op<&detail::rows_backend::gather_rows>(dev, span, out.shape[0], out.shape[1]);
}

} // namespace twill::gpu
