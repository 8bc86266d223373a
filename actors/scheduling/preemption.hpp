// preemption: chooses the sequences that give up their blocks, or their place in the running set,
// when other sequences lack them.
//
// The functions are pure. Paused sequences are preempted before all others; otherwise the sequence
// served last is preempted first. So the sequence served first can always go on. Under a policy
// that shares the running set, a sequence of a client that runs more than its share may be
// preempted for the first sequence of the queue.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/scheduling/running_set.hpp"
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

/// The head of the queue is the sequence that waits to be admitted next. Returns the running
/// sequence whose place the head takes, because the client of that running sequence runs more than
/// its share; null: none. The client must be above its share even with one sequence less: with
/// equal weights, it must run at least two more than the head's client. Each sequence is displaced
/// at most once, so that the work lost stays bounded.
scheduled_sequence* choose_displaced(const shortage& lacking, const running_set& running,
                                     const scheduled_sequence& head);

} // namespace twill::actors
