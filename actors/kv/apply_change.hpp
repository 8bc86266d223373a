// apply_change: what the allocator does with a kv_change. The order of its parts is the contract
// that the batcher plans with; it is the order of kv_change's members.
//
// Pure but for the pool and the tiers. A change that the pool cannot grant is a bug of the batcher.
// With tiers, evicted blocks that are in none of them are to be spilled, and so are all computed
// blocks where they are kept; matches go on in the tiers. With a log, what enters the prefix tree
// and what leaves it is reported there.
#pragma once

#include "actors/kv/block_pool.hpp"
#include "actors/kv/kv_event_log.hpp"
#include "actors/messages.hpp"
#include "actors/offloader/kv_tiers.hpp"

namespace twill::actors {

/// `now` is what the tiers know a disk that hangs by. Where there are tiers or a log, the pool's
/// blocks have names.
kv_grant apply_change(block_pool& pool, const kv_change& change, kv_tiers* tiers = nullptr,
                      steady_clock::time_point now = steady_clock::now(),
                      kv_event_log* log = nullptr);

/// Who has which blocks, for an administrator.
kv_leases describe(const block_pool& pool);

} // namespace twill::actors
