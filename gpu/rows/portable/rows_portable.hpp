// The portable implementation of the row ops. An op that sums over a row runs one team per row;
// other ops run one item per element, and neighbouring threads process neighbouring columns.
#pragma once

#include "gpu/detail/rows_backend.hpp"
#include "gpu/portable/launch.hpp"
#include "gpu/rows/detail/column_item.hpp"
#include "gpu/rows/detail/elementwise_kernels.hpp"
#include "gpu/rows/detail/embedding_kernel.hpp"
#include "gpu/rows/detail/norm_kernels.hpp"
#include "gpu/rows/detail/rope_kernels.hpp"

namespace twill::gpu::detail {

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
    with_activation_element(rows.out_type, [&](auto element) {
      using Element = decltype(element);
      auto* to = static_cast<typename Element::stored*>(rows.out) + r * rows.out_stride + first;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](const int i) {
        to[i] = Element::narrow(in[i] * scale * rows.weight[i]);
      });
    });
  }
};

template <class Member>
struct layer_norm_team {
  layer_norm_rows rows;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    const long r = team.league_rank();
    const int n = static_cast<int>(rows.n);
    const float* in = rows.x + r * rows.x_stride;
    const auto count = static_cast<float>(n);
    const float mean = team_sum(team, n, plain_sum{in}) / count;
    const float variance = team_sum(team, n, squares_from{in, mean}) / count;
    const float scale = 1.0f / ::sqrtf(variance + rows.epsilon);
    with_activation_element(rows.out_type, [&](auto element) {
      using Element = decltype(element);
      auto* to = static_cast<typename Element::stored*>(rows.out) + r * rows.out_stride;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](const int i) {
        to[i] = Element::narrow(rows.normed((in[i] - mean) * scale, i));
      });
    });
  }
};

/// One team per row and head; the head is a query head, or a KV head with its key and value. The
/// team's threads first divide among them the pairs to rotate, then the dimensions to store.
template <class Member>
struct rope_store_team {
  rope_store all;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    const int heads = all.n_heads + all.kv.n_kv_heads;
    const long row = team.league_rank() / heads;
    const int head = static_cast<int>(team.league_rank() - row * heads);
    if (head < all.n_heads)
      query(team, row, all.query_of(row, head));
    else
      key_and_value(team, row, head - all.n_heads);
  }

  KOKKOS_INLINE_FUNCTION void rotate(const Member& team, long row, float* x) const {
    if (all.rope == rope_kind::none) return;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, all.half),
                         [&](const int i) { all.rotate_one(x, row, i); });
    team.team_barrier();
  }

  KOKKOS_INLINE_FUNCTION void query(const Member& team, long row, float* x) const {
    rotate(team, row, x);
    const float factor = all.query_factor(row);
    if (factor == 1.0f) return;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, all.kv.head_dim),
                         [&](const int d) { x[d] *= factor; });
  }

  KOKKOS_INLINE_FUNCTION void key_and_value(const Member& team, long row, int head) const {
    float* key = all.key_of(row, head);
    rotate(team, row, key);
    const kv_layer& kv = all.kv;
    const rope_store::place at = all.place_of(row);
    const std::int64_t scale_at = all.scale_at(at, head);
    const std::int64_t step = kv.block_tokens; // a key's dimensions lie block_tokens apart
    store(team, key, kv.keys, all.key_at(at, head), step, kv.key_scales, scale_at);
    store(team, all.value_of(row, head), kv.values, all.value_at(at, head), 1, kv.value_scales,
          scale_at);
  }

  /// Stores dimension d of x at element first + d * step.
  KOKKOS_INLINE_FUNCTION void store(const Member& team, const float* x, void* to,
                                    std::int64_t first, std::int64_t step, float* scales,
                                    std::int64_t scale_at) const {
    i8_steps steps{};
    if (has_kv_scales(all.kv.type)) {
      std::uint32_t top = 0;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, all.kv.head_dim),
          [&](const int d, std::uint32_t& part) {
            const std::uint32_t magnitude = magnitude_bits(x[d]);
            part = magnitude > part ? magnitude : part;
          },
          Kokkos::Max<std::uint32_t>(top));
      steps = i8_steps_of(top);
      Kokkos::single(Kokkos::PerTeam(team), [&] { scales[scale_at] = steps.scale; });
    }
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, all.kv.head_dim), [&](const int d) {
      all.store_at(to, first + d * step, x[d], steps.inverse);
    });
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
    Launch::items(dev, "rope_angles", items, chip_angle_item{kernel});
  }
  static void rope_and_store(device& dev, const rope_store& kernel, long rows) {
    Launch::teams(dev, "rope_and_store", rows * (kernel.n_heads + kernel.kv.n_kv_heads),
                  rope_store_team<member>{kernel}, {.chip_lanes = 32});
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
