// Launching kernels: small host work runs at once on the calling thread, the rest goes to the
// device's team of host threads (see gpu/host/team.hpp for why not OpenMP) or to Kokkos.
//
// Waking other threads costs more than a decode row of norm or activation takes, so each launch
// states its size. Results never depend on which way was taken. Executor thread only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/device.hpp"
#include "gpu/host/thread_pool.hpp"

namespace twill::gpu::detail {

/// Simple operations on floats below which a launch is not worth waking other threads for.
inline constexpr long small_work = 32768;

/// f(i) for i in [0, n) on host threads, which take runs of items of about small_work / 2 each.
/// `work` is the cost of one item in float operations.
template <class Functor>
void for_host_items(device& dev, const char*, long n, long work, const Functor& f) {
  const auto run = [&](long begin, long end) {
    for (long i = begin; i < end; ++i)
      f(i);
  };
  if (n <= 1 || n * work < small_work) return run(0, n);
  const long chunk = std::max(1L, small_work / 2 / std::max(1L, work));
  dev.pool().run((n + chunk - 1) / chunk,
                 [&](std::int64_t part) { run(part * chunk, std::min(n, (part + 1) * chunk)); });
}

/// The same on the execution space, for functors that any backend can run.
template <class Functor>
void for_items(device& dev, const char* name, long n, long work, const Functor& f) {
  if (n <= 0) return;
  if constexpr (on_host)
    for_host_items(dev, name, n, work, f);
  else
    Kokkos::parallel_for(name, range(0, n), f);
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
