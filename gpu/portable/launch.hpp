// launcher: launches the portable kernels in one Kokkos execution space. Executor thread only.
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

/// The team that a kernel with teams needs.
struct team_shape {
  long scratch_bytes = 0;
  /// Lanes (threads) of a team on a GPU, rounded up to whole warps. Up to 512 lanes work for any
  /// kernel whose threads use so few registers that a multiprocessor can hold half of its largest
  /// number of threads; this half is at least 512 on NVIDIA's GPUs.
  int chip_lanes = 128;
};

/// The largest functor that Kokkos passes to a GPU as an argument of the launch. Kokkos passes a
/// larger functor through constant memory, and a launch would then wait until the previous launch
/// has read its functor from that memory.
inline constexpr std::size_t most_kernel_bytes = 352;

/// Whether kernels of the Kokkos execution space run on the processor of this process. Whether the
/// processor can read the space's memory does not decide this: the processor can also read the
/// managed memory of a GPU.
template <class Space>
inline constexpr bool space_is_host =
    std::is_same_v<typename Space::memory_space, Kokkos::HostSpace>;

/// Launches kernels in `Space`. All portable implementations launch through this struct and never
/// call Kokkos directly. On a host, TeamSize 0 lets Kokkos choose the team size, which is one
/// thread; tests set larger sizes. With OnHost, launches use the default instance of the space, and
/// ops are done when they return.
template <class Space, int TeamSize = 0, bool OnHost = space_is_host<Space>>
struct launcher {
  using range_policy = Kokkos::RangePolicy<Space, Kokkos::IndexType<long>>;
  using member = typename Kokkos::TeamPolicy<Space>::member_type;

  /// The execution space instance that kernels are launched on. A device on a GPU has an instance
  /// of its own, so that its steps do not wait for work that others launch on the GPU.
  static Space instance(const device& dev) {
    if constexpr (OnHost)
      return Space();
    else
      return *static_cast<const Space*>(dev.where().instance());
  }

  /// Runs f(i) for i in [0, n).
  template <class Functor>
  static void items(const device& dev, const char* name, long n, const Functor& f) {
    static_assert(sizeof(Functor) <= most_kernel_bytes);
    if (n <= 0) return;
    launch([&] { Kokkos::parallel_for(name, range_policy(instance(dev), 0, n), f); });
  }

  /// Runs f(member) for n teams. `Bounds` is a Kokkos::LaunchBounds of the threads (lanes) of a
  /// team and the number of teams that a multiprocessor must hold at once; it limits the registers
  /// of a kernel that would otherwise take too many.
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

  /// Runs f(i, total) for i in [0, n), waits, and returns the sum of what the calls added to
  /// `total`.
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

  /// Kokkos reports the width of a warp, 32 or 64 lanes, as the largest vector length.
  static int whole_lanes(int asked) {
    static const auto together = static_cast<int>(Kokkos::TeamPolicy<Space>::vector_length_max());
    return (asked + together - 1) / together * together;
  }
};

} // namespace twill::gpu::detail
