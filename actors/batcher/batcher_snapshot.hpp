// batcher_snapshot: the snapshot of the scheduler that administrators and dashboards ask for.
//
// Free functions without state; the batcher's thread calls them.
#pragma once

#include "actors/batcher/sequence_groups.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

/// Returns all sequences, by rising id and without their KV blocks.
scheduler_snapshot snapshot_of(const sequence_groups& groups, const scheduler& running_set);
/// Adds the KV blocks of each sequence, and the counts of blocks. `leases`, in which the allocator
/// lists the blocks of each sequence, must be of the same moment as the snapshot.
scheduler_snapshot with_blocks(scheduler_snapshot snapshot, kv_leases leases);

} // namespace twill::actors
