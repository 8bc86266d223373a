// The kernels of elementwise.hpp: each is called for a range of columns of one row, on any backend.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "gpu/detail/activation_element.hpp"
#include "gpu/detail/kernel_math.hpp"
#include "gpu/rows/elementwise.hpp"

namespace twill::gpu::detail {

struct silu_mul_span {
  const float* gate_up;
  void* out;
  dtype out_type;
  long n, in_stride, out_stride;

  TWILL_KERNEL_MEMBER void operator()(long row, long begin, long end) const {
    const float* gate = gate_up + row * in_stride;
    const float* up = gate + n;
    with_activation_element(out_type, [&](auto element) {
      using Element = decltype(element);
      auto* to = static_cast<typename Element::stored*>(out) + row * out_stride;
      for (long i = begin; i < end; ++i)
        to[i] = Element::narrow(silu(gate[i]) * up[i]);
    });
  }
};

struct gather_span {
  const void* x;
  const std::int32_t* rows;
  void* out;
  std::size_t element_bytes; ///< 4 or 2
  long x_stride, out_stride;

  TWILL_KERNEL_MEMBER void operator()(long row, long begin, long end) const {
    if (element_bytes == sizeof(float))
      copy<float>(row, begin, end);
    else
      copy<std::uint16_t>(row, begin, end);
  }

  template <class Element>
  TWILL_KERNEL_MEMBER void copy(long row, long begin, long end) const {
    const Element* from = static_cast<const Element*>(x) + static_cast<long>(rows[row]) * x_stride;
    Element* to = static_cast<Element*>(out) + row * out_stride;
    for (long i = begin; i < end; ++i)
      to[i] = from[i];
  }
};

struct activate_span {
  const float* x;
  void* out;
  dtype out_type;
  long x_stride, out_stride;
  activation kind;

  TWILL_KERNEL_MEMBER void operator()(long row, long begin, long end) const {
    switch (kind) {
    case activation::relu:
      return each(row, begin, end, [](float v) { return v < 0.0f ? 0.0f : v; }); // a NaN stays one
    case activation::gelu:
      return each(row, begin, end,
                  [](float v) { return 0.5f * v * (1.0f + ::erff(v * 0.70710678f)); });
    case activation::gelu_tanh: // 0.5 * (1 + tanh(u)) is 1 / (1 + exp(-2u))
      return each(row, begin, end, [](float v) {
        const float u = 0.79788456f * ::fmaf(0.044715f * v * v, v, v);
        return v / (1.0f + fast_exp(-2.0f * u));
      });
    case activation::silu:
      return each(row, begin, end, [](float v) { return silu(v); });
    }
  }

  template <class F>
  TWILL_KERNEL_MEMBER void each(long row, long begin, long end, const F& f) const {
    if (out == x) { // compilers do not vectorise a loop over two arrays that are one
      float* values = static_cast<float*>(out) + row * out_stride;
      for (long i = begin; i < end; ++i)
        values[i] = f(values[i]);
      return;
    }
    const float* from = x + row * x_stride;
    with_activation_element(out_type, [&](auto element) {
      using Element = decltype(element);
      auto* to = static_cast<typename Element::stored*>(out) + row * out_stride;
      for (long i = begin; i < end; ++i)
        to[i] = Element::narrow(f(from[i]));
    });
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
