// Collective operations of a Kokkos team on a row of logits or weights, or on the results of a
// row's parts (row_parts.hpp). All threads (lanes) of the team must call a function together, and
// all get its result.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/half.hpp"
#include "gpu/detail/kokkos_compat.hpp"

namespace twill::gpu::detail {

/// Encodes (x, id) as an unsigned number that orders by x and, for equal x, ranks the lower id
/// higher. NaN and -infinity give 0.
KOKKOS_INLINE_FUNCTION std::uint64_t rank_of(float x, std::int32_t id) {
  if (!(x > -INFINITY)) return 0;
  const std::uint32_t bits = f32_to_bits(x + 0.0f); // one zero
  const std::uint32_t image = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return (std::uint64_t{image} << 32) | (0xffffffffu - static_cast<std::uint32_t>(id));
}
KOKKOS_INLINE_FUNCTION std::int32_t id_of(std::uint64_t rank) {
  return rank == 0 ? -1 : static_cast<std::int32_t>(0xffffffffu - static_cast<std::uint32_t>(rank));
}
KOKKOS_INLINE_FUNCTION float value_of(std::uint64_t rank) {
  if (rank == 0) return -INFINITY;
  const auto image = static_cast<std::uint32_t>(rank >> 32);
  return bits_to_f32(image & 0x80000000u ? image & 0x7fffffffu : ~image);
}

/// The index at which a running sum passes a limit (-1: nowhere), and the sum of all items before
/// that index.
template <class Sum>
struct passing {
  std::int32_t index;
  Sum before;
};

template <class Member>
struct team_row {
  static constexpr std::int32_t n_runs = 64;
  static constexpr long scratch_bytes = n_runs * 16; ///< of sums of up to 16 bytes

  const Member& team;
  void* runs; ///< scratch_bytes of the team's scratch memory, for first_past() and sum_in_order()

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
  /// The largest of the ranks f(i).
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
  KOKKOS_INLINE_FUNCTION std::uint64_t top_rank(const std::uint64_t* ranks, std::int32_t n,
                                                std::int32_t step = 1) const {
    return top_rank(n, [&](const int i) { return ranks[std::int64_t{i} * step]; });
  }
  /// The sum of exp(x - max) over a row, added up in an order that depends only on n and the number
  /// of threads in the team.
  KOKKOS_INLINE_FUNCTION double sum_exp(const float* x, std::int32_t n, float max) const {
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n),
        [&](const int i, double& part) {
          const float e = ::expf(x[i] - max);
          part += e == e ? static_cast<double>(e) : 0.0;
        },
        sum);
    return sum;
  }

  /// The first i in [0, n) for which past(f(0) + ... + f(i)) is true. The order of the sums depends
  /// on n alone: items are added up in runs, and the run in which the limit is passed is searched
  /// again in shorter runs.
  template <class Sum, class F, class Past>
  KOKKOS_INLINE_FUNCTION passing<Sum> first_past(std::int32_t n, const F& f,
                                                 const Past& past) const {
    auto* sums = static_cast<Sum*>(runs);
    std::int32_t begin = 0, end = n;
    Sum before{};
    for (;;) {
      const std::int32_t run = (end - begin + n_runs - 1) / n_runs;
      each(n_runs, [&](const std::int32_t p) {
        Sum here{};
        for (std::int32_t i = begin + p * run; i < begin + (p + 1) * run && i < end; ++i)
          here += f(i);
        sums[p] = here;
      });
      std::int32_t p = 0;
      for (; p < n_runs; ++p) {
        Sum next = before;
        next += sums[p];
        if (past(next)) break;
        before = next;
      }
      team.team_barrier(); // the sums are overwritten
      if (p == n_runs) return {-1, before};
      begin += p * run;
      if (run == 1) return {begin, before};
      end = begin + run < end ? begin + run : end;
    }
  }
  /// f(0) + ... + f(n - 1), in the order of first_past().
  template <class Sum, class F>
  KOKKOS_INLINE_FUNCTION Sum sum_in_order(std::int32_t n, const F& f) const {
    return first_past<Sum>(n, f, [](const Sum&) { return false; }).before;
  }
};

} // namespace twill::gpu::detail
