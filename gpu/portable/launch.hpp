// launcher: how the portable kernels run in one Kokkos execution space. Executor thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "config/base/assert.hpp"
#include "gpu/detail/kokkos_abort.hpp"
#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/device.hpp"

namespace twill::gpu::detail {

/// What a kernel with teams asks of a team.
struct team_shape {
  long scratch_bytes = 0;
  /// Lanes of a team on another chip, rounded up to those that the chip runs together, which are a
  /// power of two. Up to 512 fit any kernel that leaves a multiprocessor half full.
  int chip_lanes = 128;
};

/// The largest kernel that reaches a GPU with its launch. Kokkos would pass a larger one through
/// constant memory, for which a launch waits until the launch before has read its own.
inline constexpr std::size_t most_kernel_bytes = 352;

/// Whether kernels of the space run on this process's processor. That it can read the space's
/// memory does not say so: with managed memory it reads a chip's too.
template <class Space>
inline constexpr bool space_is_host =
    std::is_same_v<typename Space::memory_space, Kokkos::HostSpace>;

/// Launches kernels in `Space`, for all portable forms: nothing else there asks Kokkos to run a
/// kernel. On a host, TeamSize 0 lets Kokkos choose, which gives teams of one lane; tests ask for
/// more. With OnHost, ops need no instance and are done when they return.
template <class Space, int TeamSize = 0, bool OnHost = space_is_host<Space>>
struct launcher {
  using range_policy = Kokkos::RangePolicy<Space, Kokkos::IndexType<long>>;
  using member = typename Kokkos::TeamPolicy<Space>::member_type;

  /// What kernels are launched on: a device of another chip has an instance of its own, so that its
  /// steps wait for nobody else's work.
  static Space instance(const device& dev) {
    if constexpr (OnHost)
      return Space();
    else
      return *static_cast<const Space*>(dev.where().instance());
  }

  /// f(i) for i in [0, n).
  template <class Functor>
  static void items(const device& dev, const char* name, long n, const Functor& f) {
    static_assert(sizeof(Functor) <= most_kernel_bytes);
    if (n <= 0) return;
    launch([&] { Kokkos::parallel_for(name, range_policy(instance(dev), 0, n), f); });
  }

  /// f(member) for n teams. `Bounds` are the lanes of a team and the teams that a multiprocessor
  /// must hold at once, as Kokkos::LaunchBounds, where the kernel would take too many registers
  /// otherwise.
  template <class Bounds = Kokkos::LaunchBounds<>, class Functor>
  static void teams(const device& dev, const char* name, long n, const Functor& f,
                    team_shape shape = {}) {
    static_assert(sizeof(Functor) <= most_kernel_bytes);
    if (n <= 0) return;
    TWILL_ASSERT(n < std::numeric_limits<int>::max(),
                 "a launch must have fewer than 2^31 - 1 teams, which Kokkos counts in an int");
    const auto count = static_cast<int>(n);
    using bounded_policy = Kokkos::TeamPolicy<Space, Bounds>;
    const auto policy = [&] {
      if constexpr (TeamSize > 0)
        return bounded_policy(instance(dev), count, TeamSize);
      else if constexpr (OnHost)
        return bounded_policy(instance(dev), count, Kokkos::AUTO);
      else
        return bounded_policy(instance(dev), count, whole_lanes(shape.chip_lanes));
    };
    const int scratch = static_cast<int>(shape.scratch_bytes);
    launch([&] {
      Kokkos::parallel_for(name, policy().set_scratch_size(0, Kokkos::PerTeam(scratch)), f);
    });
  }

  /// The total that f(i, total) adds up for i in [0, n); waits for it.
  template <class Functor>
  static std::uint64_t sum(const device& dev, const char* name, long n, const Functor& f) {
    std::uint64_t total = 0;
    launch([&] { Kokkos::parallel_reduce(name, range_policy(instance(dev), 0, n), f, total); });
    return total;
  }

private:
  template <class Call>
  static void launch(Call&& call) {
    if constexpr (!OnHost) {
      count_launch();
      const kokkos_call under_way;
      call();
    } else {
      call();
    }
  }

  /// Kokkos tells the lanes that a chip runs together, 32 or 64, as the longest vector.
  static int whole_lanes(int asked) {
    static const auto together = static_cast<int>(Kokkos::TeamPolicy<Space>::vector_length_max());
    return (asked + together - 1) / together * together;
  }
};

} // namespace twill::gpu::detail
