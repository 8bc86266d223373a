// for_host_items: divides work items among the device's host threads, or runs them all on the
// calling thread if there is little work: waking other threads takes longer than the norm or
// activation of a single row. The results are the same in both cases. Executor thread only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/device.hpp"
#include "gpu/host/thread_pool.hpp"

namespace twill::gpu::detail {

/// A launch with fewer simple float operations than this does not wake other threads.
inline constexpr long small_work = 32768;

/// Calls f(i) for i in [0, n) on host threads. A thread takes one run of items after the other; a
/// run has about small_work / 2 operations. `work` is the cost of one item in float operations.
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
