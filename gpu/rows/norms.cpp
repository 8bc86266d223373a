// One row or head per item on the host, one per Kokkos team on a device.
#include <cmath>

#include "gpu/detail/launch.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/rows/norms.hpp"

namespace twill::gpu {

using detail::check_matrix;

namespace {

constexpr int sum_lanes = 16;

/// Sums over a row: f(sum so far, i) is the next sum. There are sixteen running sums, which are
/// added pairwise at the end, so the order does not depend on the number of threads.
template <class F>
KOKKOS_INLINE_FUNCTION float lane_sum(long n, const F& f) {
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

template <class F>
KOKKOS_INLINE_FUNCTION float team_sum(const detail::team_member& team, int n, const F& f) {
  float sum = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(team, n), [&](const int i, float& part) { part = f(part, i); }, sum);
  return sum;
}

/// Adds the square of a row's distance from `point`.
struct squares_from {
  const float* row;
  float point;
  KOKKOS_INLINE_FUNCTION float operator()(float sum, long i) const {
    const float d = row[i] - point;
    return ::fmaf(d, d, sum);
  }
};

struct plain_sum {
  const float* row;
  KOKKOS_INLINE_FUNCTION float operator()(float sum, long i) const { return sum + row[i]; }
};

struct rms_norm_rows {
  const float* x;
  float* residual; ///< null: x itself is normalised
  const float* weight;
  float* out;
  long n, x_stride, residual_stride, out_stride;
  float epsilon;
  long heads; ///< parts of a row that are normalised separately

  KOKKOS_INLINE_FUNCTION void operator()(const long item) const {
    const long r = item / heads;
    const long first = (item - r * heads) * n;
    const float* in = x + r * x_stride + first;
    if (residual != nullptr) {
      float* sum = residual + r * residual_stride + first;
      for (long i = 0; i < n; ++i)
        sum[i] += in[i];
      in = sum;
    }
    float* to = out + r * out_stride + first;
    const float mean = lane_sum(n, squares_from{in, 0}) / static_cast<float>(n);
    const float scale = 1.0f / ::sqrtf(mean + epsilon);
    for (long i = 0; i < n; ++i)
      to[i] = in[i] * scale * weight[i];
  }
};

/// A device's form: one team per row and head, whose lanes read neighbouring columns.
struct rms_norm_team {
  rms_norm_rows rows;

  KOKKOS_INLINE_FUNCTION void operator()(const detail::team_member& team) const {
    const long r = team.league_rank() / rows.heads;
    const long first = (team.league_rank() - r * rows.heads) * rows.n;
    const int n = static_cast<int>(rows.n);
    const float* in = rows.x + r * rows.x_stride + first;
    if (rows.residual != nullptr) {
      float* sum = rows.residual + r * rows.residual_stride + first;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](const int i) { sum[i] += in[i]; });
      team.team_barrier();
      in = sum;
    }
    const float mean = team_sum(team, n, squares_from{in, 0}) / static_cast<float>(n);
    const float scale = 1.0f / ::sqrtf(mean + rows.epsilon);
    float* to = rows.out + r * rows.out_stride + first;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n),
                         [&](const int i) { to[i] = in[i] * scale * rows.weight[i]; });
  }
};

struct layer_norm_rows {
  const float *x, *weight, *bias; ///< bias may be null
  float* out;
  long n, x_stride, out_stride;
  float epsilon;

  KOKKOS_INLINE_FUNCTION float normed(float value, long i) const {
    const float scaled = value * weight[i];
    return bias == nullptr ? scaled : scaled + bias[i];
  }

  KOKKOS_INLINE_FUNCTION void operator()(const long r) const {
    const float* in = x + r * x_stride;
    float* to = out + r * out_stride;
    const auto count = static_cast<float>(n);
    const float mean = lane_sum(n, plain_sum{in}) / count;
    const float variance = lane_sum(n, squares_from{in, mean}) / count;
    const float scale = 1.0f / ::sqrtf(variance + epsilon);
    for (long i = 0; i < n; ++i)
      to[i] = normed((in[i] - mean) * scale, i);
  }
};

struct layer_norm_team {
  layer_norm_rows rows;

  KOKKOS_INLINE_FUNCTION void operator()(const detail::team_member& team) const {
    const long r = team.league_rank();
    const int n = static_cast<int>(rows.n);
    const float* in = rows.x + r * rows.x_stride;
    float* to = rows.out + r * rows.out_stride;
    const auto count = static_cast<float>(n);
    const float mean = team_sum(team, n, plain_sum{in}) / count;
    const float variance = team_sum(team, n, squares_from{in, mean}) / count;
    const float scale = 1.0f / ::sqrtf(variance + rows.epsilon);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n),
                         [&](const int i) { to[i] = rows.normed((in[i] - mean) * scale, i); });
  }
};

} // namespace

void rms_norm(device& dev, tensor_ref x, const float* weight, float epsilon, tensor_ref out,
              tensor_ref* residual) {
  check_matrix(x, "rms_norm: x must be (m, n) f32");
  check_matrix(out, x.shape[0], x.shape[1], "rms_norm: out must be f32 with x's shape");
  if (residual != nullptr)
    check_matrix(*residual, x.shape[0], x.shape[1],
                 "rms_norm: residual must be f32 with x's shape");
  const rms_norm_rows rows{x.as<const float>(),
                           residual == nullptr ? nullptr : residual->as<float>(),
                           weight,
                           out.as<float>(),
                           x.shape[1],
                           x.row_stride,
                           residual == nullptr ? 0 : residual->row_stride,
                           out.row_stride,
                           epsilon,
                           1};
  detail::for_rows<rms_norm_team>(dev, "rms_norm", x.shape[0], 4 * rows.n, rows);
}

void layer_norm(device& dev, tensor_ref x, const float* weight, const float* bias, float epsilon,
                tensor_ref out) {
  check_matrix(x, "layer_norm: x must be (m, n) f32");
  check_matrix(out, x.shape[0], x.shape[1], "layer_norm: out must be f32 with x's shape");
  const layer_norm_rows rows{x.as<const float>(), weight,       bias,           out.as<float>(),
                             x.shape[1],          x.row_stride, out.row_stride, epsilon};
  detail::for_rows<layer_norm_team>(dev, "layer_norm", x.shape[0], 4 * rows.n, rows);
}

void head_norm(device& dev, tensor_ref x, std::int32_t n_heads, const float* weight,
               float epsilon) {
  check_matrix(x, "head_norm: x must be (m, n_heads * head_dim) f32");
  TWILL_ASSERT(n_heads > 0 && x.shape[1] % n_heads == 0,
               "head_norm: columns must be a multiple of n_heads");
  const rms_norm_rows rows{
      x.as<const float>(), nullptr, weight,       x.as<float>(), x.shape[1] / n_heads,
      x.row_stride,        0,       x.row_stride, epsilon,       n_heads};
  detail::for_rows<rms_norm_team>(dev, "head_norm", x.shape[0] * n_heads, 4 * rows.n, rows);
}

} // namespace twill::gpu
