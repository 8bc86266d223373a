#include "gpu/rows/elementwise.hpp"

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/rows/detail/elementwise_kernels.hpp"

namespace twill::gpu {

using detail::check_activations;
using detail::check_matrix;

void silu_mul(device& dev, tensor_ref gate_up, tensor_ref out) {
  check_matrix(gate_up, "silu_mul: gate_up must be (m, 2n) f32");
  check_activations(out, gate_up.shape[0], gate_up.shape[1] / 2,
                    "silu_mul: out must be (m, n) f32, f16 or bf16");
  TWILL_ASSERT(gate_up.shape[1] == 2 * out.shape[1],
               "silu_mul: gate_up must be twice as wide as out");
  const detail::silu_mul_span span{gate_up.as<const float>(), out.data,      out.type, out.shape[1],
                                   gate_up.row_stride,        out.row_stride};
  detail::run_op<&detail::rows_backend::silu_mul>(dev, span, out.shape[0], out.shape[1]);
}

void activate(device& dev, tensor_ref x, activation kind, tensor_ref out) {
  check_matrix(x, "activate: x must be (m, n) f32");
  check_activations(out, x.shape[0], x.shape[1],
                    "activate: out must be f32, f16 or bf16 with x's shape");
  TWILL_ASSERT(out.data != x.data || (out.type == x.type && out.row_stride == x.row_stride),
               "activate: an out that is x must be the same view");
  const detail::activate_span span{x.as<const float>(), out.data,       out.type,
                                   x.row_stride,        out.row_stride, kind};
  detail::run_op<&detail::rows_backend::activate>(dev, span, x.shape[0], x.shape[1]);
}

void scale_columns(device& dev, tensor_ref x, const float* factors) {
  check_matrix(x, "scale_columns: x must be (m, n) f32");
  detail::run_op<&detail::rows_backend::scale_columns>(
      dev, detail::scale_span{x.as<float>(), factors, x.row_stride}, x.shape[0], x.shape[1]);
}

void gather_rows(device& dev, tensor_ref x, const std::int32_t* rows, tensor_ref out) {
  check_activations(x, x.shape[0], out.shape[1],
                    "gather_rows: x must be f32, f16 or bf16 with out's columns");
  check_activations(out, out.shape[0], x.shape[1],
                    "gather_rows: out must be f32, f16 or bf16 with x's columns");
  TWILL_ASSERT(x.type == out.type, "gather_rows: out must have x's type");
  const detail::gather_span span{x.data,          rows,         out.data,
                                 size_of(x.type), x.row_stride, out.row_stride};
  detail::run_op<&detail::rows_backend::gather_rows>(dev, span, out.shape[0], out.shape[1]);
}

} // namespace twill::gpu
