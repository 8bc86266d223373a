// preemption: which sequences give up their blocks, or their place in the running set, when others
// lack them.
//
// Pure. A paused sequence gives way before any other; among equals the one served last gives way
// first. So the sequence served first can always go on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/scheduling/scheduled_sequence.hpp"

namespace twill::actors {

/// What a plan lacked.
struct shortage {
  std::int64_t decode_blocks = 0;            ///< blocks that decodes asked for in vain
  std::optional<priority_key> first_starved; ///< the first decode that found no block
  std::int64_t head_blocks = 0;  ///< blocks that the head of the queue asked for in vain
  priority_key head;             ///< that head
  bool running_set_full = false; ///< the head waits only because of max_running
};

/// The sequences to preempt, in order.
std::vector<scheduled_sequence*> choose_preempted(const shortage& lacking,
                                                  const running_order& running,
                                                  const service_order& waiting);

} // namespace twill::actors
