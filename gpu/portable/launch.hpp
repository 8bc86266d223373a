// launcher: how the portable kernels run in one Kokkos execution space. Executor thread only.
#pragma once

#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/device.hpp"

namespace twill::gpu::detail {

/// Launches kernels in `Space`. TeamSize 0 lets Kokkos choose, which on the host gives teams of one
/// lane; tests ask for more.
template <class Space, int TeamSize = 0>
struct launcher {
  using range_policy = Kokkos::RangePolicy<Space, Kokkos::IndexType<long>>;
  using team_policy = Kokkos::TeamPolicy<Space>;
  using member = typename team_policy::member_type;

  /// What kernels are launched on: a device of another chip has an instance of its own, so that its
  /// steps wait for nobody else's work.
  static Space instance(const device& dev) {
    if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace,
                                             typename Space::memory_space>::accessible)
      return Space();
    else
      return *static_cast<const Space*>(dev.where().instance());
  }

  /// f(i) for i in [0, n).
  template <class Functor>
  static void items(const device& dev, const char* name, long n, const Functor& f) {
    if (n > 0) Kokkos::parallel_for(name, range_policy(instance(dev), 0, n), f);
  }

  /// f(member) for n teams, which have `scratch_bytes` of scratch memory each.
  template <class Functor>
  static void teams(const device& dev, const char* name, long n, const Functor& f,
                    long scratch_bytes = 0) {
    if (n <= 0) return;
    const auto count = static_cast<int>(n);
    const auto policy = [&] {
      if constexpr (TeamSize == 0)
        return team_policy(instance(dev), count, Kokkos::AUTO);
      else
        return team_policy(instance(dev), count, TeamSize);
    };
    Kokkos::parallel_for(
        name, policy().set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(scratch_bytes))), f);
  }
};

} // namespace twill::gpu::detail
