// Launching kernels that every backend runs: on the host by the device's threads
// (gpu/host/for_items.hpp), elsewhere through Kokkos. Each launch states its size. Executor thread
// only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/device.hpp"
#include "gpu/host/for_items.hpp"

namespace twill::gpu::detail {

/// f(i) for i in [0, n), for functors that any backend can run. `work` is the cost of one item in
/// float operations.
template <class Functor>
void for_items(device& dev, const char* name, long n, long work, const Functor& f) {
  if (n <= 0) return;
  if constexpr (on_host)
    for_host_items(dev, n, work, f);
  else
    Kokkos::parallel_for(name, range(0, n), f);
}

/// One row per item on the host, which vectorises over it; one Kokkos team per row on a device.
template <class Team, class Row>
void for_rows(device& dev, const char* name, long n, long work, const Row& row) {
  if constexpr (on_host)
    for_host_items(dev, n, work, row);
  else if (n > 0)
    Kokkos::parallel_for(name, team_range(static_cast<int>(n), Kokkos::AUTO), Team{row});
}

/// f(row, begin, end) over column ranges that cover (rows, cols): long ranges on the host, which
/// vectorises them, single columns on a device, where neighbouring threads take neighbouring ones.
template <class Functor>
void for_spans(device& dev, const char* name, long rows, long cols, long work, const Functor& f) {
  const long width = on_host ? 2048 : 1;
  const long spans = (cols + width - 1) / width;
  for_items(
      dev, name, rows * spans, work * std::min(width, cols), KOKKOS_LAMBDA(const long i) {
        const long row = i / spans;
        const long begin = (i - row * spans) * width;
        f(row, begin, begin + width < cols ? begin + width : cols);
      });
}

} // namespace twill::gpu::detail
