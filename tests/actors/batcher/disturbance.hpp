// disturbance: what sessions do to a request that is scheduled, for tests that drive a batcher_core
// at random.
#pragma once

#include <cstdint>
#include <set>

#include "actors/batcher/batcher_core.hpp"

namespace twill::test {

enum class disturbance {
  release,         ///< its session has ended it
  end_choice,      ///< a stop string has ended one of its choices
  waited_too_long, ///< it ends if it was never scheduled
  pause,
  resume ///< also of a request that is not paused
};

/// `paused` has the requests that are paused and not resumed. `choice` is only used by end_choice.
inline void disturb(actors::batcher_core& core, std::set<actors::request_id>& paused,
                    actors::request_id request, disturbance kind, std::int32_t choice = 0) {
  switch (kind) {
  case disturbance::release:
    return core.release(request);
  case disturbance::end_choice:
    return core.finish_choice(request, choice);
  case disturbance::waited_too_long:
    return core.waited_too_long(request);
  case disturbance::pause:
    paused.insert(request);
    return core.pause(request);
  case disturbance::resume:
    paused.erase(request);
    return core.resume(request);
  }
}

} // namespace twill::test
