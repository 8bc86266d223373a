// The kernels of elementwise.hpp: each is called for a range of columns of one row, on any backend.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/kernel_math.hpp"
#include "gpu/rows/elementwise.hpp"

namespace twill::gpu::detail {

struct silu_mul_span {
  const float* gate_up;
  float* out;
  long n, in_stride, out_stride;

  TWILL_KERNEL_MEMBER void operator()(long row, long begin, long end) const {
    const float* gate = gate_up + row * in_stride;
    const float* up = gate + n;
    float* to = out + row * out_stride;
    for (long i = begin; i < end; ++i)
      to[i] = gate[i] / (1.0f + fast_exp(-gate[i])) * up[i];
  }
};

struct gather_span {
  const float* x;
  const std::int32_t* rows;
  float* out;
  long x_stride, out_stride;

  TWILL_KERNEL_MEMBER void operator()(long row, long begin, long end) const {
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

  TWILL_KERNEL_MEMBER void operator()(long row, long begin, long end) const {
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
        to[i] = to[i] / (1.0f + fast_exp(-2.0f * u));
      }
      return;
    case activation::silu:
      for (long i = begin; i < end; ++i)
        to[i] = to[i] / (1.0f + fast_exp(-to[i]));
      return;
    }
  }
};

struct scale_span {
  float* x;
  const float* factors;
  long stride;

  TWILL_KERNEL_MEMBER void operator()(long row, long begin, long end) const {
    float* to = x + row * stride;
    for (long i = begin; i < end; ++i)
      to[i] *= factors[i];
  }
};

} // namespace twill::gpu::detail
