// preemption: chooses the sequences that give up their blocks, or their place in the running set,
// when other sequences lack them.
//
// Pure. Paused sequences are preempted before all others; otherwise the sequence served last is
// preempted first. So the sequence served first can always go on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/scheduling/scheduled_sequence.hpp"

namespace twill::actors {

/// The resources that a plan lacked.
struct shortage {
  std::int64_t decode_blocks = 0;            ///< blocks that decodes needed and did not get
  std::optional<priority_key> first_starved; ///< key of the first decode that found no block
  std::int64_t head_blocks = 0;  ///< blocks that the head of the queue needed and did not get
  priority_key head;             ///< key of the head of the queue
  bool running_set_full = false; ///< the head of the queue waits only because of max_running
};

/// The sequences to preempt, in order.
std::vector<scheduled_sequence*> choose_preempted(const shortage& lacking,
                                                  const running_order& running,
                                                  const service_order& waiting);

} // namespace twill::actors
