// apply_change: applies a kv_change to the allocator's pool. The parts of a change are applied in
// the order of kv_change's members; the batcher plans with this order.
//
// Pure except for the pool, the tiers and the log. A change that the pool cannot grant is a bug of
// the batcher. The tiers are host memory and disk. With tiers, evicted blocks that no tier has are
// spilled (copied to host memory); if blocks are to outlive the process, all computed blocks are
// spilled. If the blocks that follow a prefix match on the device are in the tiers, their keys are
// added to the match. With a kv_event_log, each block that enters or leaves the prefix tree is
// reported to it.
#pragma once

#include "actors/kv/block_pool.hpp"
#include "actors/kv/kv_event_log.hpp"
#include "actors/messages.hpp"
#include "actors/offloader/kv_tiers.hpp"

namespace twill::actors {

/// `now` lets the tiers recognize a disk that hangs. With tiers or a log, the pool must give blocks
/// names, which are hashes of their prefixes (block_pool::name_blocks).
kv_grant apply_change(block_pool& pool, const kv_change& change, kv_tiers* tiers = nullptr,
                      steady_clock::time_point now = steady_clock::now(),
                      kv_event_log* log = nullptr);

/// Lists which leases have which blocks, for an administrator.
kv_leases describe(const block_pool& pool);

} // namespace twill::actors
