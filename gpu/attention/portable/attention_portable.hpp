// attention()'s portable form: a Kokkos kernel with one team per row and group of heads.
//
// KV is read in tiles of 64 positions counted from position 0, so a row's result depends on its own
// sequence alone, as in the host's form.

#pragma once

#include <cmath>

#include "gpu/attention/detail/kv4_kernels.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/kernel_math.hpp"
#include "gpu/detail/kv_place.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/portable/launch.hpp"

namespace twill::gpu::detail {

template <class Member>
struct attention_team {
  static constexpr int tile = 64;
  static constexpr int heads_per_team = 8; ///< bounds the scratch: 8 * (256 + 64 + 16 + 3) floats
  static constexpr int parts = 8;          ///< lanes that share the softmax of a head's tile

  const float* q;
  float* out;
  long q_stride, out_stride;
  kv_layer kv;
  int group, splits; ///< query heads of a KV head, and teams that share them
  float scale;
  int window;
  const float* slopes;
  ragged_batch batch;

  KOKKOS_INLINE_FUNCTION static long scratch_floats(int head_dim) {
    return long{heads_per_team} * (head_dim + tile + 2 * parts + 3);
  }

  /// Where the block and head of a position begin among elements and scales, and the position's
  /// offset in the block.
  struct place {
    std::int64_t first, first_scale;
    int offset;
  };
  KOKKOS_INLINE_FUNCTION place place_of(const std::int32_t* blocks, int position,
                                        int kv_head) const {
    const int column = position / kv.block_tokens;
    const std::int64_t block = blocks[column];
    return {block_at(kv, block) + std::int64_t{kv_head} * kv.block_tokens * kv.head_dim,
            block_scales_at(kv, block) + std::int64_t{kv_head} * kv.block_tokens,
            position - column * kv.block_tokens};
  }

  /// The largest of a head's maximum so far and those of its parts.
  KOKKOS_INLINE_FUNCTION static float top_of(float max, const float* of_parts) {
    for (int p = 0; p < parts; ++p)
      max = of_parts[p] > max ? of_parts[p] : max;
    return max;
  }

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    const int dim = kv.head_dim;
    const int item = team.league_rank();
    const int split = item % splits;
    const int kv_head = item / splits % kv.n_kv_heads;
    const long token = item / splits / kv.n_kv_heads;
    const int first = split * heads_per_team;
    const int heads = group - first < heads_per_team ? group - first : heads_per_team;
    const long head = long{kv_head} * group + first;

    float* acc = static_cast<float*>(
        team.team_shmem().get_shmem(static_cast<int>(scratch_floats(dim) * long{sizeof(float)})));
    float* weights = acc + heads_per_team * dim;
    float* part_max = weights + heads_per_team * tile;
    float* part_sum = part_max + heads_per_team * parts;
    float* max = part_sum + heads_per_team * parts;
    float* sum = max + heads_per_team;
    float* shrink = sum + heads_per_team;

    const int end = batch.positions[token] + 1;
    const int begin = window > 0 && end > window ? end - window : 0;
    const std::int32_t* blocks =
        batch.block_table + std::int64_t{batch.sequence_of[token]} * batch.max_blocks;
    const float* query = q + token * q_stride + head * dim;

    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads * dim),
                         [&](const int i) { acc[i] = 0; });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads), [&](const int h) {
      max[h] = -INFINITY;
      sum[h] = 0;
    });
    for (int base = begin / tile * tile; base < end; base += tile) {
      const int from = begin > base ? begin - base : 0;
      const int to = end - base < tile ? end - base : tile;
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads * tile), [&](const int i) {
        const int h = i / tile;
        const int j = i - h * tile;
        if (j < from || j >= to) return;
        const place at = place_of(blocks, base + j, kv_head);
        const std::int64_t first = at.first + at.offset;
        float dot = 0;
        for (int d = 0; d < dim; ++d)
          dot =
              ::fmaf(query[h * dim + d] * scale,
                     load_as_f32(kv.keys, kv.type, first + std::int64_t{d} * kv.block_tokens), dot);
        if (kv.type == dtype::i8) dot *= kv.key_scales[at.first_scale + at.offset];
        if (slopes != nullptr) dot += slopes[head + h] * static_cast<float>(base + j - (end - 1));
        weights[i] = dot;
      });
      team.team_barrier();
      // Every part-th position of a head is a lane's, so that the order of the sums does not depend
      // on the number of lanes.
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads * parts), [&](const int i) {
        const float* row = weights + i / parts * tile;
        float top = -INFINITY;
        for (int j = from + i % parts; j < to; j += parts)
          top = row[j] > top ? row[j] : top;
        part_max[i] = top;
      });
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads * parts), [&](const int i) {
        float* row = weights + i / parts * tile;
        const float top = top_of(max[i / parts], part_max + i / parts * parts);
        float part = 0;
        for (int j = from + i % parts; j < to; j += parts) {
          row[j] = ::expf(row[j] - top);
          part += row[j];
        }
        part_sum[i] = part;
      });
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads), [&](const int h) {
        const float top = top_of(max[h], part_max + h * parts);
        float added = 0;
        for (int p = 0; p < parts; ++p)
          added += part_sum[h * parts + p];
        shrink[h] = ::expf(max[h] - top);
        sum[h] = ::fmaf(sum[h], shrink[h], added);
        max[h] = top;
      });
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads * dim), [&](const int i) {
        const int h = i / dim;
        float value = acc[i] * shrink[h];
        for (int j = from; j < to; ++j) {
          const place at = place_of(blocks, base + j, kv_head);
          float weight = weights[h * tile + j];
          if (kv.type == dtype::i8) weight *= kv.value_scales[at.first_scale + at.offset];
          value = ::fmaf(weight,
                         load_as_f32(kv.values, kv.type,
                                     at.first + std::int64_t{at.offset} * dim + (i - h * dim)),
                         value);
        }
        acc[i] = value;
      });
    }
    team.team_barrier();
    float* to = out + token * out_stride + head * dim;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads * dim),
                         [&](const int i) { to[i] = acc[i] / sum[i / dim]; });
  }
};

template <class Launch>
struct attention_portable {
  using kernel_type = attention_team<typename Launch::member>;

  static std::int64_t scratch_bytes(const device&, std::int32_t, std::int32_t, std::int32_t,
                                    std::int64_t, std::int64_t) {
    return 0;
  }

  static void run(device& dev, const ragged_batch& batch, const attention_args& args) {
    const int group = args.n_heads / args.kv.n_kv_heads;
    const int splits = (group + kernel_type::heads_per_team - 1) / kernel_type::heads_per_team;
    const kernel_type kernel{args.q.as<const float>(),
                             args.out.as<float>(),
                             args.q.row_stride,
                             args.out.row_stride,
                             args.kv,
                             group,
                             splits,
                             args.scale,
                             args.window,
                             args.alibi_slopes,
                             batch};
    Launch::teams(
        dev, "attention", long{batch.n_tokens} * args.kv.n_kv_heads * splits, kernel,
        {.scratch_bytes = kernel_type::scratch_floats(args.kv.head_dim) * long{sizeof(float)}});
  }

  template <direction Direction>
  static void kv4(device& dev, const kv4_geometry& at, long items) {
    with_kv4_kernel<position_item, Direction>(at, [&](const auto& kernel) {
      Launch::items(dev, "kv4", items * at.kv.block_tokens, kernel);
    });
  }

  static constexpr attention_backend table{scratch_bytes, run, kv4<direction::pack>,
                                           kv4<direction::unpack>};
};

} // namespace twill::gpu::detail
