// batcher_snapshot: the snapshot of the scheduler that administrators and dashboards ask for.
//
// A free function without state; the batcher's thread calls it.
#pragma once

#include "actors/batcher/sequence_groups.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

/// Returns all sequences with their KV blocks. `leases`, in which the allocator lists the blocks of
/// each sequence, must be of the same moment as the other arguments.
scheduler_snapshot snapshot_of(const sequence_groups& groups, const scheduler& running_set,
                               kv_leases leases);

} // namespace twill::actors
