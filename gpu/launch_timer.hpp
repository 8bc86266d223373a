// launch_timer: measures how long a piece of work takes on a device, without the cost of launching
// the work where the device can separate the two.
//
// On the host the timer reads a clock before and after each call. On a GPU it records the GPU's own
// timestamps ("events") before and after many calls. Normally the launches of those calls are
// captured into a graph, which is replayed between the timestamps. Where an op cannot be captured,
// or runs so long that launches do not matter, the calls are launched one by one. Executor thread
// only. A device that fails throws device_lost_error.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/device.hpp"

namespace twill::gpu {

enum class timed_by : std::uint8_t {
  clock,  ///< the host's clock, read before each call and after waiting for its end
  events, ///< the device's timestamps before and after many launches, all enqueued before the first
          ///< began
  graph,  ///< the device's timestamps before and after a replay of many captured launches
};
const char* name_of(timed_by how);

struct timing_plan {
  /// The number of calls after which the work uses the same memory again. A graph holds at least
  /// this many calls, so that a caller that rotates through buffers larger than the cache finds no
  /// buffer cached.
  std::int32_t turn = 1;
  std::int32_t samples = 20; ///< a GPU takes this many; a host takes more where `seconds` allow it
  /// The time to spend on measuring. After four times this long, measuring stops even if fewer than
  /// `samples` samples have been taken; but at least three samples are always taken.
  double seconds = 0.3;
  bool graphs = true; ///< false: no launch is captured
};

struct launch_times {
  timed_by how = timed_by::clock;
  std::vector<double> seconds; ///< time of one call; one value per sample, ascending, never empty

  double median() const { return seconds[seconds.size() / 2]; }
  double least() const { return seconds.front(); }
  double most() const { return seconds.back(); }
};

/// Times `f`, which launches work on the device. `f` is called at least once before measuring
/// begins.
launch_times time_launches(device& dev, const timing_plan& plan, const std::function<void()>& f);

/// Bytes of the largest cache in front of the device's memory. Buffers that are used in turn must
/// be several times larger in total if none of them is to be found in the cache.
std::int64_t cache_bytes(const device& dev);

} // namespace twill::gpu
