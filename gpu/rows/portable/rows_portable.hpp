// The row ops' portable form: one team per row where lanes must add up, else one item per element,
// where neighbouring threads take neighbouring columns.
#pragma once

#include "gpu/detail/rows_backend.hpp"
#include "gpu/portable/launch.hpp"
#include "gpu/rows/detail/elementwise_kernels.hpp"
#include "gpu/rows/detail/embedding_kernel.hpp"
#include "gpu/rows/detail/norm_kernels.hpp"
#include "gpu/rows/detail/rope_kernels.hpp"

namespace twill::gpu::detail {

/// A kernel over column ranges, column by column.
template <class Kernel>
struct column_item {
  Kernel kernel;
  long cols;
  KOKKOS_INLINE_FUNCTION void operator()(const long i) const {
    const long row = i / cols;
    const long column = i - row * cols;
    kernel(row, column, column + 1);
  }
};

template <class Member, class F>
KOKKOS_INLINE_FUNCTION float team_sum(const Member& team, int n, const F& f) {
  float sum = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(team, n), [&](const int i, float& part) { part = f(part, i); }, sum);
  return sum;
}

/// One team per row and head, whose lanes read neighbouring columns.
template <class Member>
struct rms_norm_team {
  rms_norm_rows rows;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
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

template <class Member>
struct layer_norm_team {
  layer_norm_rows rows;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
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

/// A work item: one query head of one row, or its key and value head together.
struct rope_store_head {
  rope_store all;

  TWILL_KERNEL_MEMBER void operator()(const long i) const {
    const long heads = all.n_heads + all.kv.n_kv_heads;
    const long row = i / heads;
    const int head = static_cast<int>(i - row * heads);
    if (head < all.n_heads) return all.query(row, head);
    all.key_and_value(row, head - all.n_heads, all.place_of(row));
  }
};

template <class Launch>
struct rows_portable {
  using member = typename Launch::member;

  template <class Kernel>
  static void columns(device& dev, const Kernel& kernel, long rows, long cols) {
    Launch::items(dev, "columns", rows * cols, column_item<Kernel>{kernel, cols});
  }
  static void feed_tokens(device& dev, const feed_item& kernel, long items) {
    Launch::items(dev, "feed_tokens", items, kernel);
  }
  static void rms_norm(device& dev, const rms_norm_rows& kernel, long items) {
    Launch::teams(dev, "rms_norm", items, rms_norm_team<member>{kernel}, {.chip_lanes = 256});
  }
  static void layer_norm(device& dev, const layer_norm_rows& kernel, long rows) {
    Launch::teams(dev, "layer_norm", rows, layer_norm_team<member>{kernel}, {.chip_lanes = 256});
  }
  static void rope_angles(device& dev, const angle_item& kernel, long items) {
    Launch::items(dev, "rope_angles", items, kernel);
  }
  static void rope_and_store(device& dev, const rope_store& kernel, long rows) {
    Launch::items(dev, "rope_and_store", rows * (kernel.n_heads + kernel.kv.n_kv_heads),
                  rope_store_head{kernel});
  }

  static constexpr rows_backend table{columns<silu_mul_span>,
                                      columns<activate_span>,
                                      columns<scale_span>,
                                      columns<gather_span>,
                                      columns<embedding_span>,
                                      feed_tokens,
                                      rms_norm,
                                      layer_norm,
                                      rope_angles,
                                      rope_and_store};
};

} // namespace twill::gpu::detail
