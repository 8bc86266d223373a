// Launching kernels: small host work runs at once on the calling thread, the rest goes to Kokkos.
//
// Waking a thread pool costs more than a decode row of norm or activation takes, so each launch
// states its size. Results never depend on which way was taken. Executor thread only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/detail/kokkos_compat.hpp"

namespace twill::gpu::detail {

/// Simple operations on floats below which a launch is not worth waking other threads for.
inline constexpr long small_work = 32768;

/// f(i) for i in [0, n) on the execution space. `work` is the cost of one item in float operations.
template <class Functor>
void for_items(const char* name, long n, long work, const Functor& f) {
  if (n <= 0) return;
  if constexpr (on_host) {
    if (n == 1 || n * work < small_work) {
      for (long i = 0; i < n; ++i)
        f(i);
      return;
    }
  }
  Kokkos::parallel_for(name, range(0, n), f);
}

/// The same for functors that only the host can run, items taken one by one as threads fall idle.
template <class Functor>
void for_host_items(const char* name, long n, long work, const Functor& f) {
  using space = Kokkos::DefaultHostExecutionSpace;
  using policy =
      Kokkos::RangePolicy<space, Kokkos::IndexType<long>, Kokkos::Schedule<Kokkos::Dynamic>>;
  if (n <= 0) return;
  if (n == 1 || n * work < small_work) {
    for (long i = 0; i < n; ++i)
      f(i);
    return;
  }
  Kokkos::parallel_for(name, policy(0, n, Kokkos::ChunkSize(1)), f);
}

/// f(row, begin, end) over column ranges that cover (rows, cols): long ranges on the host, which
/// vectorises them, single columns on a device, where neighbouring threads take neighbouring ones.
template <class Functor>
void for_spans(const char* name, long rows, long cols, long work, const Functor& f) {
  const long width = on_host ? 2048 : 1;
  const long spans = (cols + width - 1) / width;
  for_items(
      name, rows * spans, work * std::min(width, cols), KOKKOS_LAMBDA(const long i) {
        const long row = i / spans;
        const long begin = (i - row * spans) * width;
        f(row, begin, begin + width < cols ? begin + width : cols);
      });
}

} // namespace twill::gpu::detail
