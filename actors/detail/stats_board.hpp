// stats_board: the counters of the engine, one copy for everyone.
//
// Thread safety: every function takes the one mutex. Writers are the batcher (once per step, by
// update()), sessions (once per request) and the supervisor; readers copy. Invariant: counters only
// grow.
#pragma once

#include <mutex>

#include "actors/port/engine_port.hpp"

namespace twill::actors {

/// Adds one observation.
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
