// launch_timer: how long a piece of work takes on a device, without the cost of launching it where
// the device can tell the two apart.
//
// On the host a clock is read round each call. A GPU takes its own timestamps ("events") before and
// after many calls: of a captured graph of their launches, which is replayed, or, where an op
// cannot be captured or runs too long for launches to matter, of the launches themselves.
// Executor thread only. A device that fails throws device_lost_error.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/device.hpp"

namespace twill::gpu {

enum class timed_by : std::uint8_t {
  clock,  ///< the host's clock round each call and the wait for it
  events, ///< the device's timestamps round many launches that were enqueued before they began
  graph,  ///< the device's timestamps round a replay of many captured launches
};
const char* name_of(timed_by how);

struct timing_plan {
  /// The number of calls after which work comes back to the same memory. A graph holds at least as
  /// many, so that a caller who rotates buffers beyond the cache finds none of them cached.
  std::int32_t turn = 1;
  std::int32_t samples = 20; ///< a GPU takes as many; a host takes more where `seconds` allow it
  /// The time to spend. Measuring ends before `samples` after four times as long, but takes at
  /// least three samples.
  double seconds = 0.3;
  bool graphs = true; ///< false: no launch is captured
};

struct launch_times {
  timed_by how = timed_by::clock;
  std::vector<double> seconds; ///< of one call, one value a sample, ascending, never empty

  double median() const { return seconds[seconds.size() / 2]; }
  double least() const { return seconds.front(); }
  double most() const { return seconds.back(); }
};

/// Times `f`, which launches work on the device. It is called once or more before measuring begins.
launch_times time_launches(device& dev, const timing_plan& plan, const std::function<void()>& f);

/// Bytes of the largest cache of the device's memory. Buffers that are used in turn must exceed it
/// several times over, if none of them is to be found there.
std::int64_t cache_bytes(const device& dev);

} // namespace twill::gpu
