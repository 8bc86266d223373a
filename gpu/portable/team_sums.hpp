// team_sums: several numbers that the threads (lanes) of a team add up together, in one reduction:
//   team_sums<float, 4> total;
//   Kokkos::parallel_reduce(Kokkos::TeamThreadRange(team, n), f,
//   Kokkos::Sum<decltype(total)>(total));
// Every lane gets the total. Its rounding depends on n and the number of lanes alone.
#pragma once

#include "gpu/detail/kokkos_compat.hpp"

namespace twill::gpu::detail {

template <class T, int N>
struct team_sums {
  T value[N];

  KOKKOS_INLINE_FUNCTION team_sums() {
    for (int i = 0; i < N; ++i)
      value[i] = 0;
  }
  KOKKOS_INLINE_FUNCTION team_sums& operator+=(const team_sums& other) {
    for (int i = 0; i < N; ++i)
      value[i] += other.value[i];
    return *this;
  }
};

} // namespace twill::gpu::detail

template <class T, int N>
struct Kokkos::reduction_identity<twill::gpu::detail::team_sums<T, N>> {
  KOKKOS_FORCEINLINE_FUNCTION static twill::gpu::detail::team_sums<T, N> sum() { return {}; }
};
