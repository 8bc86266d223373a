// launcher: how the portable kernels run in one Kokkos execution space. Executor thread only.
#pragma once

#include "gpu/detail/kokkos_abort.hpp"
#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/device.hpp"

namespace twill::gpu::detail {

/// What a kernel with teams asks of a team.
struct team_shape {
  long scratch_bytes = 0;
  /// Lanes of a team on another chip: a multiple of 32. Up to 512 fit any kernel that leaves a
  /// multiprocessor half full.
  int chip_lanes = 128;
};

/// The largest kernel that reaches a GPU with its launch. Kokkos would pass a larger one through
/// constant memory, for which a launch waits until the launch before has read its own.
inline constexpr std::size_t most_kernel_bytes = 352;

/// Launches kernels in `Space`. On a host, TeamSize 0 lets Kokkos choose, which gives teams of one
/// lane; tests ask for more.
template <class Space, int TeamSize = 0>
struct launcher {
  using range_policy = Kokkos::RangePolicy<Space, Kokkos::IndexType<long>>;
  using member = typename Kokkos::TeamPolicy<Space>::member_type;

  static constexpr bool on_host =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible;

  /// What kernels are launched on: a device of another chip has an instance of its own, so that its
  /// steps wait for nobody else's work.
  static Space instance(const device& dev) {
    if constexpr (on_host)
      return Space();
    else
      return *static_cast<const Space*>(dev.where().instance());
  }

  /// f(i) for i in [0, n).
  template <class Functor>
  static void items(const device& dev, const char* name, long n, const Functor& f) {
    static_assert(sizeof(Functor) <= most_kernel_bytes);
    if (n <= 0) return;
    launch(name, range_policy(instance(dev), 0, n), f);
  }

  /// f(member) for n teams. `Bounds` are the lanes of a team and the teams that a multiprocessor
  /// must hold at once, as Kokkos::LaunchBounds, where the kernel would take too many registers
  /// otherwise.
  template <class Bounds = Kokkos::LaunchBounds<>, class Functor>
  static void teams(const device& dev, const char* name, long n, const Functor& f,
                    team_shape shape = {}) {
    static_assert(sizeof(Functor) <= most_kernel_bytes);
    if (n <= 0) return;
    const auto count = static_cast<int>(n);
    using bounded_policy = Kokkos::TeamPolicy<Space, Bounds>;
    const auto policy = [&] {
      if constexpr (TeamSize > 0)
        return bounded_policy(instance(dev), count, TeamSize);
      else if constexpr (on_host)
        return bounded_policy(instance(dev), count, Kokkos::AUTO);
      else
        return bounded_policy(instance(dev), count, shape.chip_lanes);
    };
    const int scratch = static_cast<int>(shape.scratch_bytes);
    launch(name, policy().set_scratch_size(0, Kokkos::PerTeam(scratch)), f);
  }

private:
  template <class Policy, class Functor>
  static void launch(const char* name, const Policy& policy, const Functor& f) {
    if constexpr (on_host) {
      Kokkos::parallel_for(name, policy, f);
    } else {
      count_launch();
      const kokkos_call call;
      Kokkos::parallel_for(name, policy, f);
    }
  }
};

} // namespace twill::gpu::detail
