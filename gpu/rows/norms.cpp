#include "gpu/rows/norms.hpp"

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/rows/detail/norm_kernels.hpp"

namespace twill::gpu {

using detail::check_matrix;

void rms_norm(device& dev, tensor_ref x, const float* weight, float epsilon, tensor_ref out,
              tensor_ref* residual) {
  check_matrix(x, "rms_norm: x must be (m, n) f32");
  detail::check_activations(out, x.shape[0], x.shape[1],
                            "rms_norm: out must be f32, f16 or bf16 with x's shape");
  if (residual != nullptr)
    check_matrix(*residual, x.shape[0], x.shape[1],
                 "rms_norm: residual must be f32 with x's shape");
  const detail::rms_norm_rows rows{x.as<const float>(),
                                   residual == nullptr ? nullptr : residual->as<float>(),
                                   weight,
                                   out.data,
                                   x.shape[1],
                                   x.row_stride,
                                   residual == nullptr ? 0 : residual->row_stride,
                                   out.row_stride,
                                   epsilon,
                                   1,
                                   out.type};
  detail::run_op<&detail::rows_backend::rms_norm>(dev, rows, x.shape[0]);
}

void layer_norm(device& dev, tensor_ref x, const float* weight, const float* bias, float epsilon,
                tensor_ref out) {
  check_matrix(x, "layer_norm: x must be (m, n) f32");
  detail::check_activations(out, x.shape[0], x.shape[1],
                            "layer_norm: out must be f32, f16 or bf16 with x's shape");
  const detail::layer_norm_rows rows{
      x.as<const float>(), weight,         bias,    out.data, x.shape[1],
      x.row_stride,        out.row_stride, epsilon, out.type};
  detail::run_op<&detail::rows_backend::layer_norm>(dev, rows, x.shape[0]);
}

void head_norm(device& dev, tensor_ref x, std::int32_t n_heads, const float* weight,
               float epsilon) {
  check_matrix(x, "head_norm: x must be (m, n_heads * head_dim) f32");
  TWILL_ASSERT(n_heads > 0 && x.shape[1] % n_heads == 0,
               "head_norm: columns must be a multiple of n_heads");
  const detail::rms_norm_rows rows{
      x.as<const float>(), nullptr, weight,  x.data, x.shape[1] / n_heads, x.row_stride, 0,
      x.row_stride,        epsilon, n_heads, x.type};
  detail::run_op<&detail::rows_backend::rms_norm>(dev, rows, x.shape[0] * n_heads);
}

} // namespace twill::gpu
