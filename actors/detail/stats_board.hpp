// stats_board: the counters and gauges of the engine, in one copy that all actors share.
//
// Thread safety: every function takes the one mutex. The batcher writes once per step, sessions
// once per request, and the supervisor; readers get a copy. Invariant: counters only grow.
#pragma once

#include <mutex>

#include "actors/port/engine_port.hpp"

namespace twill::actors {

/// Adds one observation to a histogram.
void observe(histogram& h, double value);

class stats_board {
public:
  stats_board();

  template <class F>
  void update(F&& change) {
    const std::lock_guard lock(mutex_);
    change(stats_);
  }
  engine_stats read() const;

private:
  mutable std::mutex mutex_;
  engine_stats stats_;
};

} // namespace twill::actors
