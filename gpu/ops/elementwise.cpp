#include "gpu/ops/elementwise.hpp"

#include <cmath>

#include "gpu/detail/kernel_math.hpp"
#include "gpu/detail/launch.hpp"

namespace twill::gpu {

namespace {

constexpr int sum_lanes = 16;

struct rms_norm_rows {
  const float* x;
  float* residual; ///< null: x itself is normalised
  const float* weight;
  float* out;
  long n, x_stride, residual_stride, out_stride;
  float epsilon;

  /// Sixteen running sums, added pairwise: the same order on every backend and thread count.
  KOKKOS_INLINE_FUNCTION static float sum_of_squares(const float* row, long n) {
    float lane[sum_lanes] = {};
    const long whole = n / sum_lanes * sum_lanes;
    for (long i = 0; i < whole; i += sum_lanes)
      for (int l = 0; l < sum_lanes; ++l)
        lane[l] = ::fmaf(row[i + l], row[i + l], lane[l]);
    for (long i = whole; i < n; ++i)
      lane[i - whole] = ::fmaf(row[i], row[i], lane[i - whole]);
    for (int width = sum_lanes / 2; width > 0; width /= 2)
      for (int l = 0; l < width; ++l)
        lane[l] += lane[l + width];
    return lane[0];
  }

  KOKKOS_INLINE_FUNCTION void operator()(const long r) const {
    const float* in = x + r * x_stride;
    if (residual != nullptr) {
      float* sum = residual + r * residual_stride;
      for (long i = 0; i < n; ++i)
        sum[i] += in[i];
      in = sum;
    }
    float* to = out + r * out_stride;
    const float mean = sum_of_squares(in, n) / static_cast<float>(n);
    const float scale = 1.0f / ::sqrtf(mean + epsilon);
    for (long i = 0; i < n; ++i)
      to[i] = in[i] * scale * weight[i];
  }
};

/// One team per row, for devices: lanes read neighbouring columns.
struct rms_norm_team {
  rms_norm_rows rows;

  KOKKOS_INLINE_FUNCTION void operator()(const detail::team_member& team) const {
    const long r = team.league_rank();
    const int n = static_cast<int>(rows.n);
    const float* in = rows.x + r * rows.x_stride;
    if (rows.residual != nullptr) {
      float* sum = rows.residual + r * rows.residual_stride;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](const int i) { sum[i] += in[i]; });
      team.team_barrier();
      in = sum;
    }
    float squares = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n),
        [&](const int i, float& part) { part = ::fmaf(in[i], in[i], part); }, squares);
    const float scale = 1.0f / ::sqrtf(squares / static_cast<float>(n) + rows.epsilon);
    float* to = rows.out + r * rows.out_stride;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n),
                         [&](const int i) { to[i] = in[i] * scale * rows.weight[i]; });
  }
};

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

void check_matrix(const tensor_ref& t, const char* message) {
  TWILL_ASSERT(t.rank == 2 && t.type == dtype::f32 && t.row_stride >= t.shape[1], message);
}

} // namespace

void rms_norm(device& dev, tensor_ref x, const float* weight, float epsilon, tensor_ref out,
              tensor_ref* residual) {
  check_matrix(x, "rms_norm: x must be (m, n) f32");
  check_matrix(out, "rms_norm: out must be (m, n) f32");
  TWILL_ASSERT(out.shape == x.shape, "rms_norm: out must have x's shape");
  if (residual != nullptr) {
    check_matrix(*residual, "rms_norm: residual must be (m, n) f32");
    TWILL_ASSERT(residual->shape == x.shape, "rms_norm: residual must have x's shape");
  }
  const rms_norm_rows rows{x.as<const float>(),
                           residual == nullptr ? nullptr : residual->as<float>(),
                           weight,
                           out.as<float>(),
                           x.shape[1],
                           x.row_stride,
                           residual == nullptr ? 0 : residual->row_stride,
                           out.row_stride,
                           epsilon};
  if constexpr (detail::on_host)
    detail::for_items(dev, "rms_norm", x.shape[0], 3 * x.shape[1], rows);
  else if (x.shape[0] > 0)
    Kokkos::parallel_for("rms_norm", detail::team_range(static_cast<int>(x.shape[0]), Kokkos::AUTO),
                         rms_norm_team{rows});
}

void silu_mul(device& dev, tensor_ref gate_up, tensor_ref out) {
  check_matrix(gate_up, "silu_mul: gate_up must be (m, 2n) f32");
  check_matrix(out, "silu_mul: out must be (m, n) f32");
  TWILL_ASSERT(gate_up.shape[0] == out.shape[0] && gate_up.shape[1] == 2 * out.shape[1],
               "silu_mul: gate_up must be twice as wide as out");
  const silu_mul_span span{gate_up.as<const float>(), out.as<float>(), out.shape[1],
                           gate_up.row_stride, out.row_stride};
  detail::for_spans(dev, "silu_mul", out.shape[0], out.shape[1], 8, span);
}

void gather_rows(device& dev, tensor_ref x, const std::int32_t* rows, tensor_ref out) {
  check_matrix(x, "gather_rows: x must be (m, n) f32");
  check_matrix(out, "gather_rows: out must be (k, n) f32");
  TWILL_ASSERT(x.shape[1] == out.shape[1], "gather_rows: x and out must have the same columns");
  const gather_span span{x.as<const float>(), rows, out.as<float>(), x.row_stride, out.row_stride};
  detail::for_spans(dev, "gather_rows", out.shape[0], out.shape[1], 1, span);
}

} // namespace twill::gpu
