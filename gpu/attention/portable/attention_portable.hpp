// The portable implementation of attention(): a Kokkos kernel with one team per row and group of
// heads.
//
// KV is read in tiles of 64 positions counted from position 0, so a row's result depends only on
// its own sequence, as in the host implementation.

#pragma once

#include <cmath>

#include "gpu/attention/detail/kv4_kernels.hpp"
#include "gpu/detail/activation_element.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/kernel_math.hpp"
#include "gpu/detail/kv_place.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/portable/launch.hpp"

namespace twill::gpu::detail {

template <class Member>
struct attention_team {
  static constexpr int tile = 64;
  static constexpr int heads_per_team = 8; ///< bounds the scratch
  static constexpr int parts = 8;          ///< lanes that share the softmax of a head's tile
  static constexpr int in_flight = 4;      ///< loads that a lane has pending at once

  const float* q;
  void* out;
  dtype out_type;
  long q_stride, out_stride;
  kv_layer kv;
  int group, splits; ///< query heads per KV head, and teams among which they are divided
  float scale;
  int window;
  const float* slopes;
  ragged_batch batch;

  /// The place of a position in the KV arena: the indices of the first element of its key, of the
  /// first element of its value, and of its scales.
  struct place {
    std::int64_t key, value, scale;
  };

  KOKKOS_INLINE_FUNCTION static long scratch_bytes(int head_dim) {
    return tile * long{sizeof(place)} +
           long{heads_per_team} * (2 * head_dim + tile + 2 * parts + 3) * long{sizeof(float)};
  }

  KOKKOS_INLINE_FUNCTION place place_of(const std::int32_t* blocks, int position,
                                        int kv_head) const {
    const int column = position / kv.block_tokens;
    const int offset = position - column * kv.block_tokens;
    const std::int64_t block = blocks[column];
    const std::int64_t first =
        block_at(kv, block) + std::int64_t{kv_head} * kv.block_tokens * kv.head_dim;
    return {first + offset, first + std::int64_t{offset} * kv.head_dim,
            block_scales_at(kv, block) + std::int64_t{kv_head} * kv.block_tokens + offset};
  }

  /// The positions [from, to) of a tile, for `heads` heads.
  struct part_of_tile {
    const place* places; // (tile)
    int heads, from, to;
  };

  /// Writes the products of scaled queries (heads, head_dim) and keys to scores (heads, tile), and
  /// adds ALiBi's biases. `distance` is the tile's first position minus the query's.
  template <class Element>
  KOKKOS_INLINE_FUNCTION void multiply_keys(const Member& team, const part_of_tile& t,
                                            const float* query, const float* of_heads, int distance,
                                            float* scores) const {
    const int dim = kv.head_dim;
    const std::int64_t step = kv.block_tokens; // a key's dimensions lie block_tokens apart
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, t.heads * tile), [&](const int i) {
      const int h = i / tile;
      const int j = i - h * tile;
      if (j < t.from || j >= t.to) return;
      const Element* key = static_cast<const Element*>(kv.keys) + t.places[j].key;
      const float* x = query + h * dim;
      float dot = 0;
      int d = 0;
      for (; d + in_flight <= dim; d += in_flight, key += in_flight * step) {
        Element k[in_flight];
        TWILL_UNROLL
        for (int c = 0; c < in_flight; ++c)
          k[c] = key[c * step];
        TWILL_UNROLL
        for (int c = 0; c < in_flight; ++c)
          dot = ::fmaf(x[d + c], widen(k[c]), dot);
      }
      for (; d < dim; ++d, key += step)
        dot = ::fmaf(x[d], widen(*key), dot);
      if constexpr (kv_element<Element>::scaled) dot *= kv.key_scales[t.places[j].scale];
      if (of_heads != nullptr) dot += of_heads[h] * static_cast<float>(distance + j);
      scores[i] = dot;
    });
  }

  /// Rescales the sums `acc` (heads, head_dim), then adds to them the values weighted by `weights`
  /// (heads, tile).
  template <class Element>
  KOKKOS_INLINE_FUNCTION void add_values(const Member& team, const part_of_tile& t,
                                         const float* weights, const float* shrink,
                                         float* acc) const {
    const int dim = kv.head_dim;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, t.heads * dim), [&](const int i) {
      const int h = i / dim;
      const Element* values = static_cast<const Element*>(kv.values) + (i - h * dim);
      const float* row = weights + h * tile;
      const auto weight_of = [&](int j) {
        if constexpr (kv_element<Element>::scaled)
          return row[j] * kv.value_scales[t.places[j].scale];
        else
          return row[j];
      };
      float value = acc[i] * shrink[h];
      int j = t.from;
      for (; j + in_flight <= t.to; j += in_flight) {
        Element v[in_flight];
        TWILL_UNROLL
        for (int c = 0; c < in_flight; ++c)
          v[c] = values[t.places[j + c].value];
        TWILL_UNROLL
        for (int c = 0; c < in_flight; ++c)
          value = ::fmaf(weight_of(j + c), widen(v[c]), value);
      }
      for (; j < t.to; ++j)
        value = ::fmaf(weight_of(j), widen(values[t.places[j].value]), value);
      acc[i] = value;
    });
  }

  /// The maximum of `max`, a head's maximum so far, and of the maxima of the parts of its tile.
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

    auto* places =
        static_cast<place*>(team.team_shmem().get_shmem(static_cast<int>(scratch_bytes(dim))));
    auto* acc = reinterpret_cast<float*>(places + tile);
    float* query = acc + heads_per_team * dim;
    float* weights = query + heads_per_team * dim;
    float* part_max = weights + heads_per_team * tile;
    float* part_sum = part_max + heads_per_team * parts;
    float* max = part_sum + heads_per_team * parts;
    float* sum = max + heads_per_team;
    float* shrink = sum + heads_per_team;

    const int end = batch.positions[token] + 1;
    const int begin = window > 0 && end > window ? end - window : 0;
    const std::int32_t* blocks =
        batch.block_table + std::int64_t{batch.sequence_of[token]} * batch.max_blocks;
    const float* of_heads = slopes == nullptr ? nullptr : slopes + head;

    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads * dim), [&](const int i) {
      acc[i] = 0;
      query[i] = q[token * q_stride + head * dim + i] * scale;
    });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads), [&](const int h) {
      max[h] = -INFINITY;
      sum[h] = 0;
    });
    for (int base = begin / tile * tile; base < end; base += tile) {
      const int from = begin > base ? begin - base : 0;
      const int to = end - base < tile ? end - base : tile;
      const part_of_tile here{places, heads, from, to};
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, from, to),
                           [&](const int j) { places[j] = place_of(blocks, base + j, kv_head); });
      team.team_barrier();
      with_kv_element(kv.type, [&](auto element) {
        multiply_keys<decltype(element)>(team, here, query, of_heads, base - (end - 1), weights);
      });
      team.team_barrier();
      // Item i processes every `parts`-th position of the tile for head i / parts, so that the
      // order of the sums does not depend on the number of threads in a team.
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
      with_kv_element(kv.type, [&](auto element) {
        add_values<decltype(element)>(team, here, weights, shrink, acc);
      });
    }
    team.team_barrier();
    with_activation_element(out_type, [&](auto element) {
      using Element = decltype(element);
      auto* to = static_cast<typename Element::stored*>(out) + token * out_stride + head * dim;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads * dim),
                           [&](const int i) { to[i] = Element::narrow(acc[i] / sum[i / dim]); });
    });
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
                             args.out.data,
                             args.out.type,
                             args.q.row_stride,
                             args.out.row_stride,
                             args.kv,
                             group,
                             splits,
                             args.scale,
                             args.window,
                             args.alibi_slopes,
                             batch};
    Launch::teams(dev, "attention", long{batch.n_tokens} * args.kv.n_kv_heads * splits, kernel,
                  {.scratch_bytes = kernel_type::scratch_bytes(args.kv.head_dim)});
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
