// for_host_items: shares items out among the device's host threads, or runs them at once where they
// are few, since waking other threads costs more than a decode row of norm or activation takes.
// Results never depend on which way was taken. Executor thread only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/device.hpp"
#include "gpu/host/thread_pool.hpp"

namespace twill::gpu::detail {

/// Simple operations on floats below which a launch is not worth waking other threads for.
inline constexpr long small_work = 32768;

/// f(i) for i in [0, n) on host threads, which take runs of items of about small_work / 2 each.
/// `work` is the cost of one item in float operations.
template <class Functor>
void for_host_items(device& dev, long n, long work, const Functor& f) {
  const auto run = [&](long begin, long end) {
    for (long i = begin; i < end; ++i)
      f(i);
  };
  if (n <= 1 || n * work < small_work) return run(0, n);
  const long chunk = std::max(1L, small_work / 2 / std::max(1L, work));
  dev.pool().run((n + chunk - 1) / chunk,
                 [&](std::int64_t part) { run(part * chunk, std::min(n, (part + 1) * chunk)); });
}

} // namespace twill::gpu::detail
