#include "gpu/rows/elementwise.hpp"

#include <cmath>

#include "gpu/detail/kernel_math.hpp"
#include "gpu/detail/launch.hpp"
#include "gpu/detail/shapes.hpp"

namespace twill::gpu {

using detail::check_matrix;

namespace {

struct silu_mul_span {
  const float* gate_up;
  float* out;
  long n, in_stride, out_stride;

  KOKKOS_INLINE_FUNCTION void operator()(long row, long begin, long end) const {
    const float* gate = gate_up + row * in_stride;
    const float* up = gate + n;
    float* to = out + row * out_stride;
    for (long i = begin; i < end; ++i)
      to[i] = gate[i] / (1.0f + detail::fast_exp(-gate[i])) * up[i];
  }
};

struct gather_span {
  const float* x;
  const std::int32_t* rows;
  float* out;
  long x_stride, out_stride;

  KOKKOS_INLINE_FUNCTION void operator()(long row, long begin, long end) const {
    const float* from = x + static_cast<long>(rows[row]) * x_stride;
    float* to = out + row * out_stride;
    for (long i = begin; i < end; ++i)
      to[i] = from[i];
  }
};

struct activate_span {
  float* x;
  long stride;
  activation kind;

  KOKKOS_INLINE_FUNCTION void operator()(long row, long begin, long end) const {
    float* to = x + row * stride;
    switch (kind) {
    case activation::relu:
      for (long i = begin; i < end; ++i)
        to[i] = to[i] < 0.0f ? 0.0f : to[i]; // a NaN stays one
      return;
    case activation::gelu:
      for (long i = begin; i < end; ++i)
        to[i] = 0.5f * to[i] * (1.0f + ::erff(to[i] * 0.70710678f));
      return;
    case activation::gelu_tanh: // 0.5 * (1 + tanh(u)) is 1 / (1 + exp(-2u))
      for (long i = begin; i < end; ++i) {
        const float u = 0.79788456f * ::fmaf(0.044715f * to[i] * to[i], to[i], to[i]);
        to[i] = to[i] / (1.0f + detail::fast_exp(-2.0f * u));
      }
      return;
    case activation::silu:
      for (long i = begin; i < end; ++i)
        to[i] = to[i] / (1.0f + detail::fast_exp(-to[i]));
      return;
    }
  }
};

struct scale_span {
  float* x;
  const float* factors;
  long stride;

  KOKKOS_INLINE_FUNCTION void operator()(long row, long begin, long end) const {
    float* to = x + row * stride;
    for (long i = begin; i < end; ++i)
      to[i] *= factors[i];
  }
};

} // namespace

void silu_mul(device& dev, tensor_ref gate_up, tensor_ref out) {
  check_matrix(gate_up, "silu_mul: gate_up must be (m, 2n) f32");
  check_matrix(out, "silu_mul: out must be (m, n) f32");
  TWILL_ASSERT(gate_up.shape[0] == out.shape[0] && gate_up.shape[1] == 2 * out.shape[1],
               "silu_mul: gate_up must be twice as wide as out");
  const silu_mul_span span{gate_up.as<const float>(), out.as<float>(), out.shape[1],
                           gate_up.row_stride, out.row_stride};
  detail::for_spans(dev, "silu_mul", out.shape[0], out.shape[1], 8, span);
}

void activate(device& dev, tensor_ref x, activation kind) {
  check_matrix(x, "activate: x must be (m, n) f32");
  const long work = kind == activation::relu ? 1 : kind == activation::gelu ? 20 : 8;
  detail::for_spans(dev, "activate", x.shape[0], x.shape[1], work,
                    activate_span{x.as<float>(), x.row_stride, kind});
}

void scale_columns(device& dev, tensor_ref x, const float* factors) {
  check_matrix(x, "scale_columns: x must be (m, n) f32");
  detail::for_spans(dev, "scale_columns", x.shape[0], x.shape[1], 1,
                    scale_span{x.as<float>(), factors, x.row_stride});
}

void gather_rows(device& dev, tensor_ref x, const std::int32_t* rows, tensor_ref out) {
  check_matrix(x, "gather_rows: x must be (m, n) f32");
  check_matrix(out, "gather_rows: out must be (k, n) f32");
  TWILL_ASSERT(x.shape[1] == out.shape[1], "gather_rows: x and out must have the same columns");
  const gather_span span{x.as<const float>(), rows, out.as<float>(), x.row_stride, out.row_stride};
  detail::for_spans(dev, "gather_rows", out.shape[0], out.shape[1], 1, span);
}

} // namespace twill::gpu
