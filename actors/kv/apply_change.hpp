// apply_change: applies a kv_change to the allocator's pool. The parts of a change are applied in
// the order of kv_change's members; the batcher plans with this order.
//
// Pure except for the pool and the log. A change that the pool cannot carry out is a bug of the
// batcher. A reset is reported to the kv_event_log at once; grant_blocks() reports blocks that
// enter or leave the prefix tree.
#pragma once

#include "actors/kv/block_pool.hpp"
#include "actors/kv/kv_event_log.hpp"
#include "actors/messages.hpp"

namespace twill::actors {

void apply_change(block_pool& pool, const kv_change& change, kv_event_log* log = nullptr);

/// Lists which leases have which blocks, for an administrator.
kv_leases describe(const block_pool& pool);

} // namespace twill::actors
