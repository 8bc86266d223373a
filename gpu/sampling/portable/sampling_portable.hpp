// sampling's portable form: Kokkos kernels with one team per row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gpu/detail/sampling_backend.hpp"
#include "gpu/portable/launch.hpp"
#include "gpu/portable/team_sums.hpp"
#include "gpu/sampling/detail/sample_row.hpp"

namespace twill::gpu::detail {

/// Teams that hold a copy of their row at a time; bounds the memory of the copies.
inline constexpr long copies_at_once = 128;
/// Lanes of a team on another chip: a step has few rows, of a whole vocabulary each.
inline constexpr int row_lanes = 512;

struct tally_sums {
  team_sums<std::int32_t, 3> count;
  team_sums<double, 3> mass;

  KOKKOS_INLINE_FUNCTION tally_sums& operator+=(const tally_sums& other) {
    count += other.count;
    mass += other.mass;
    return *this;
  }
};

} // namespace twill::gpu::detail

template <>
struct Kokkos::reduction_identity<twill::gpu::detail::tally_sums> {
  KOKKOS_FORCEINLINE_FUNCTION static twill::gpu::detail::tally_sums sum() { return {}; }
};

namespace twill::gpu::detail {

/// The passes over a row as a team does them. All lanes call each member together, and all get its
/// result.
template <class Member>
struct team_passes {
  static constexpr std::int32_t run_len = 32, n_runs = 32, runs_len = run_len * n_runs;
  static constexpr long scratch_bytes = n_runs * long{sizeof(double)};

  const Member& team;
  void* runs; ///< scratch_bytes of the team's scratch memory, for draw() and nth_equal()

  /// An unsigned image of (x, id) that orders by value, then by lower id; 0 for NaN and -infinity.
  KOKKOS_INLINE_FUNCTION static std::uint64_t rank_of(float x, std::int32_t id) {
    if (!(x > -INFINITY)) return 0;
    const std::uint32_t bits = f32_to_bits(x + 0.0f); // one zero
    const std::uint32_t image = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (std::uint64_t{image} << 32) | (0xffffffffu - static_cast<std::uint32_t>(id));
  }
  KOKKOS_INLINE_FUNCTION static std::int32_t id_of(std::uint64_t rank) {
    return rank == 0 ? -1
                     : static_cast<std::int32_t>(0xffffffffu - static_cast<std::uint32_t>(rank));
  }
  KOKKOS_INLINE_FUNCTION static float value_of(std::uint64_t rank) {
    if (rank == 0) return -INFINITY;
    const auto image = static_cast<std::uint32_t>(rank >> 32);
    return bits_to_f32(image & 0x80000000u ? image & 0x7fffffffu : ~image);
  }
  KOKKOS_INLINE_FUNCTION static bool takes_part(float w, std::int32_t i, host::weight_cut cut) {
    return w > cut.threshold || (w == cut.threshold && i <= cut.last_tie);
  }
  template <class F>
  KOKKOS_INLINE_FUNCTION std::uint64_t top_rank(std::int32_t n, const F& f) const {
    std::uint64_t best = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n),
        [&](const int i, std::uint64_t& part) {
          const std::uint64_t rank = f(i);
          part = rank > part ? rank : part;
        },
        Kokkos::Max<std::uint64_t>(best));
    return best;
  }
  template <class Sum, class F>
  KOKKOS_INLINE_FUNCTION Sum sum_over(std::int32_t n, const F& f) const {
    Sum sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n), [&](const int i, Sum& part) { part += f(i); }, sum);
    return sum;
  }

  template <class F>
  KOKKOS_INLINE_FUNCTION void single(const F& f) const {
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), f);
    team.team_barrier();
  }
  template <class F>
  KOKKOS_INLINE_FUNCTION void each(std::int32_t n, const F& f) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), f);
    team.team_barrier();
  }
  KOKKOS_INLINE_FUNCTION std::int32_t argmax(const float* x, std::int32_t n) const {
    return id_of(top_rank(n, [&](const int i) { return rank_of(x[i], i); }));
  }
  /// The value comes out of its rank: a lane that is ahead may already overwrite x.
  KOKKOS_INLINE_FUNCTION float largest(const float* x, std::int32_t n) const {
    return value_of(top_rank(n, [&](const int i) { return rank_of(x[i], i); }));
  }
  KOKKOS_INLINE_FUNCTION double sum_exp(const float* x, std::int32_t n, float max) const {
    return sum_over<double>(n, [&](const int i) {
      const float e = ::expf(x[i] - max);
      return e == e ? static_cast<double>(e) : 0.0;
    });
  }
  KOKKOS_INLINE_FUNCTION void to_weights(float* x, std::int32_t n, float max,
                                         float inverse_temperature) const {
    each(n, [&](const std::int32_t i) {
      const float e = ::expf((x[i] - max) * inverse_temperature);
      x[i] = e == e ? e : 0.0f;
    });
  }
  KOKKOS_INLINE_FUNCTION host::weight_tally tally(const float* w, std::int32_t n,
                                                  const float (&t)[3], bool with_mass) const {
    const float least[3] = {t[0], t[1], t[2]};
    tally_sums sums;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n),
        [&](const int i, tally_sums& part) {
          for (int k = 0; k < 3; ++k) {
            if (!(w[i] >= least[k])) continue;
            part.count.value[k] += 1;
            if (with_mass) part.mass.value[k] += static_cast<double>(w[i]);
          }
        },
        Kokkos::Sum<tally_sums>(sums));
    host::weight_tally result = {};
    for (int k = 0; k < 3; ++k) {
      result.count[k] = sums.count.value[k];
      result.mass[k] = sums.mass.value[k];
    }
    return result;
  }
  KOKKOS_INLINE_FUNCTION double mass_of(const float* w, std::int32_t n,
                                        host::weight_cut cut) const {
    return sum_over<double>(n, [&](const int i) { return mass_at(w, i, cut); });
  }
  KOKKOS_INLINE_FUNCTION static double mass_at(const float* w, std::int32_t i,
                                               host::weight_cut cut) {
    return takes_part(w[i], i, cut) ? static_cast<double>(w[i]) : 0.0;
  }
  KOKKOS_INLINE_FUNCTION std::int32_t draw(const float* w, std::int32_t n, host::weight_cut cut,
                                           double target) const {
    const passing at = first_past(
        n, [&](const std::int32_t i) { return mass_at(w, i, cut); }, target);
    if (at.index >= 0) return at.index;
    // Rounding left the target out of reach: the last that takes part.
    std::int32_t last = -1;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, at.end),
        [&](const int i, std::int32_t& part) {
          if (takes_part(w[i], i, cut) && i > part) part = i;
        },
        Kokkos::Max<std::int32_t>(last));
    return last < 0 ? -1 : last; // the identity of a maximum is the lowest integer
  }
  KOKKOS_INLINE_FUNCTION std::int32_t nth_equal(const float* w, std::int32_t n, float value,
                                                std::int32_t nth) const {
    const passing at = first_past(
        n, [&](const std::int32_t i) { return std::int32_t{w[i] == value}; }, nth - 1);
    return at.index < 0 ? n - 1 : at.index;
  }

  /// Where a running sum passes a target: an index, or -1 where rounding left it out of reach
  /// although a sum over the entries before `end` said otherwise, or where none passes it.
  struct passing {
    std::int32_t index, end;
  };
  /// The first i in [0, n) at which f(0) + ... + f(i) passes `target`. The lanes add up runs of
  /// 16384 entries until one passes it, then runs of 1024 in that one, then all 32 runs of 32 at
  /// once, and walk the last run alike. The order of the sums depends on n and the number of lanes
  /// alone.
  template <class Sum, class F>
  KOKKOS_INLINE_FUNCTION passing first_past(std::int32_t n, const F& f, Sum target) const {
    std::int32_t begin = 0, end = n;
    Sum before = 0;
    for (std::int32_t length = 16 * runs_len; length >= runs_len; length /= 16) {
      std::int32_t at = begin;
      for (; at < end; at += length) {
        const std::int32_t stop = end - at < length ? end : at + length;
        const Sum here = sum_over<Sum>(stop - at, [&](const int i) { return f(at + i); });
        if (before + here > target) {
          begin = at;
          end = stop;
          break;
        }
        before += here;
      }
      if (at >= end) return {-1, end};
    }
    auto* parts = static_cast<Sum*>(runs);
    each(n_runs, [&](const std::int32_t p) {
      Sum here = 0;
      for (std::int32_t i = begin + p * run_len; i < begin + (p + 1) * run_len && i < end; ++i)
        here += f(i);
      parts[p] = here;
    });
    std::int32_t p = 0;
    while (p < n_runs && !(before + parts[p] > target))
      before += parts[p++];
    for (std::int32_t i = begin + p * run_len; i < end; ++i) {
      before += f(i);
      if (before > target) return {i, end};
    }
    return {-1, end};
  }
  KOKKOS_INLINE_FUNCTION std::int32_t next_largest(const float* x, std::int32_t n, float value,
                                                   std::int32_t id) const {
    return id_of(top_rank(n, [&](const int i) {
      return x[i] < value || (x[i] == value && i > id) ? rank_of(x[i], i) : std::uint64_t{0};
    }));
  }
};

template <class Member>
struct sample_team {
  sample_batch batch;
  long copies; ///< rows c, c + copies, c + 2 * copies, ... share copy buffer c
  float* raw;  ///< (copies, vocab), or null

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    using passes_of_team = team_passes<Member>;
    const passes_of_team passes{
        team, team.team_shmem().get_shmem(static_cast<int>(passes_of_team::scratch_bytes))};
    const long copy = team.league_rank();
    for (long r = copy; r < batch.rows; r += copies)
      sample_one(passes, batch, r, raw == nullptr ? nullptr : raw + copy * batch.vocab);
  }
};

template <class Member>
struct argmax_team {
  const float* logits;
  long stride;
  std::int32_t vocab;
  std::int32_t* tokens;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    const team_passes<Member> passes{team, nullptr};
    const std::int32_t id = passes.argmax(logits + team.league_rank() * stride, vocab);
    passes.single([&] { tokens[team.league_rank()] = id < 0 ? 0 : id; });
  }
};

template <class Member>
struct token_logprobs_team {
  const float* logits;
  long stride;
  std::int32_t vocab;
  const std::int32_t* ids;
  float* logprobs;

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    const long r = team.league_rank();
    token_logprob(team_passes<Member>{team, nullptr}, logits + r * stride, vocab, ids[r],
                  logprobs + r);
  }
};

template <class Launch>
struct sampling_portable {
  using member = typename Launch::member;

  static void sample(device& dev, const sample_args& args) {
    const sample_batch batch = batch_of(args);
    const long copies = args.any_logprobs ? std::min(batch.rows, copies_at_once) : batch.rows;
    float* raw = nullptr;
    if (args.any_logprobs)
      raw = static_cast<float*>(
          dev.scratch(static_cast<std::size_t>(copies * batch.vocab) * sizeof(float)));
    Launch::teams(dev, "sample", copies, sample_team<member>{batch, copies, raw},
                  {.scratch_bytes = team_passes<member>::scratch_bytes, .chip_lanes = row_lanes});
  }

  static void argmax(device& dev, const tensor_ref& logits, std::int32_t* tokens) {
    Launch::teams(dev, "argmax", logits.shape[0],
                  argmax_team<member>{logits.as<const float>(),
                                      static_cast<long>(logits.row_stride),
                                      static_cast<std::int32_t>(logits.shape[1]), tokens},
                  {.chip_lanes = row_lanes});
  }

  static void token_logprobs(device& dev, const tensor_ref& logits, const std::int32_t* ids,
                             float* logprobs) {
    Launch::teams(
        dev, "token_logprobs", logits.shape[0],
        token_logprobs_team<member>{logits.as<const float>(), static_cast<long>(logits.row_stride),
                                    static_cast<std::int32_t>(logits.shape[1]), ids, logprobs},
        {.chip_lanes = row_lanes});
  }

  static constexpr sampling_backend table{sample, argmax, token_logprobs};
};

} // namespace twill::gpu::detail
