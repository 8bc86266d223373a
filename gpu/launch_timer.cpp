#include "gpu/launch_timer.hpp"

#include <algorithm>
#include <chrono>

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/probe_backend.hpp"

namespace twill::gpu {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

launch_times time_by_clock(device& dev, const timing_plan& plan, const std::function<void()>& f) {
  f();
  dev.fence();
  launch_times times;
  const auto start = clock::now();
  const auto enough = [&] {
    const auto taken = static_cast<std::int32_t>(times.seconds.size());
    const double spent = seconds_since(start);
    return taken >= 3 &&
           ((taken >= plan.samples && spent >= plan.seconds) || spent >= 4 * plan.seconds);
  };
  while (!enough()) {
    const auto begin = clock::now();
    f();
    dev.fence();
    times.seconds.push_back(seconds_since(begin));
  }
  std::sort(times.seconds.begin(), times.seconds.end());
  return times;
}

/// Larger than the last-level caches of the processors that we know of.
constexpr std::int64_t host_cache_bytes = std::int64_t{48} << 20;

} // namespace

const char* name_of(timed_by how) {
  switch (how) {
  case timed_by::clock:
    return "clock";
  case timed_by::events:
    return "events";
  case timed_by::graph:
    break;
  }
  return "graph";
}

launch_times time_launches(device& dev, const timing_plan& plan, const std::function<void()>& f) {
  const detail::probe_backend& probe = dev.ops().get<detail::probe_backend>();
  return probe.time == nullptr ? time_by_clock(dev, plan, f) : probe.time(dev, plan, f);
}

std::int64_t cache_bytes(const device& dev) {
  const detail::probe_backend& probe = dev.ops().get<detail::probe_backend>();
  return probe.cache_bytes == nullptr ? host_cache_bytes : probe.cache_bytes(dev);
}

} // namespace twill::gpu
