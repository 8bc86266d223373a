// The kernels of norms.hpp, which normalise one row, or one head of a row, on any backend.
#pragma once

#include <cmath>

#include "gpu/detail/activation_element.hpp"
#include "gpu/detail/half.hpp"

namespace twill::gpu::detail {

inline constexpr int sum_lanes = 16;

/// Sums over a row: f(sum so far, i) is the next sum. There are sixteen running sums, which are
/// added pairwise at the end, so the order does not depend on the number of threads.
template <class F>
TWILL_KERNEL_INLINE float lane_sum(long n, const F& f) {
  float lane[sum_lanes] = {};
  const long whole = n / sum_lanes * sum_lanes;
  for (long i = 0; i < whole; i += sum_lanes)
    for (int l = 0; l < sum_lanes; ++l)
      lane[l] = f(lane[l], i + l);
  for (long i = whole; i < n; ++i)
    lane[i - whole] = f(lane[i - whole], i);
  for (int width = sum_lanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l)
      lane[l] += lane[l + width];
  return lane[0];
}

/// Adds the square of an element's distance from `point`.
struct squares_from {
  const float* row;
  float point;
  TWILL_KERNEL_MEMBER float operator()(float sum, long i) const {
    const float d = row[i] - point;
    return ::fmaf(d, d, sum);
  }
};

struct plain_sum {
  const float* row;
  TWILL_KERNEL_MEMBER float operator()(float sum, long i) const { return sum + row[i]; }
};

struct rms_norm_rows {
  const float* x;
  float* residual; ///< null: x itself is normalised
  const float* weight;
  void* out;
  long n, x_stride, residual_stride, out_stride;
  float epsilon;
  long heads; ///< parts of a row that are normalised separately
  dtype out_type;

  TWILL_KERNEL_MEMBER void operator()(const long item) const {
    const long r = item / heads;
    const long first = (item - r * heads) * n;
    const float* in = x + r * x_stride + first;
    if (residual != nullptr) {
      float* sum = residual + r * residual_stride + first;
      for (long i = 0; i < n; ++i)
        sum[i] += in[i];
      in = sum;
    }
    const float mean = lane_sum(n, squares_from{in, 0}) / static_cast<float>(n);
    const float scale = 1.0f / ::sqrtf(mean + epsilon);
    with_activation_element(out_type, [&](auto element) {
      using Element = decltype(element);
      auto* to = static_cast<typename Element::stored*>(out) + r * out_stride + first;
      for (long i = 0; i < n; ++i)
        to[i] = Element::narrow(in[i] * scale * weight[i]);
    });
  }
};

struct layer_norm_rows {
  const float *x, *weight, *bias; ///< bias may be null
  void* out;
  long n, x_stride, out_stride;
  float epsilon;
  dtype out_type;

  TWILL_KERNEL_MEMBER float normed(float value, long i) const {
    const float scaled = value * weight[i];
    return bias == nullptr ? scaled : scaled + bias[i];
  }

  TWILL_KERNEL_MEMBER void operator()(const long r) const {
    const float* in = x + r * x_stride;
    const auto count = static_cast<float>(n);
    const float mean = lane_sum(n, plain_sum{in}) / count;
    const float variance = lane_sum(n, squares_from{in, mean}) / count;
    const float scale = 1.0f / ::sqrtf(variance + epsilon);
    with_activation_element(out_type, [&](auto element) {
      using Element = decltype(element);
      auto* to = static_cast<typename Element::stored*>(out) + r * out_stride;
      for (long i = 0; i < n; ++i)
        to[i] = Element::narrow(normed((in[i] - mean) * scale, i));
    });
  }
};

} // namespace twill::gpu::detail
