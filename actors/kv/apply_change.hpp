// apply_change: what the allocator does with a kv_change. The order of its parts is the contract
// that the batcher plans with; it is the order of kv_change's members.
//
// Pure but for the pool. A change that the pool cannot grant is a bug of the batcher.
#pragma once

#include "actors/kv/block_pool.hpp"
#include "actors/messages.hpp"

namespace twill::actors {

kv_grant apply_change(block_pool& pool, const kv_change& change);

} // namespace twill::actors
