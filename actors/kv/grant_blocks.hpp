// grant_blocks: the allocator's answer to a block_request. Prefixes are looked up first; then
// blocks are granted. Cached blocks may be evicted for them, except the blocks of matches that are
// kept (prefix_match::kept).
//
// Pure except for the pool, the tiers and the log. The tiers are host memory and disk. With tiers,
// evicted blocks that no tier has are spilled (copied to host memory); if blocks are to outlive the
// process, all computed blocks are spilled. If the blocks that follow a prefix match on the device
// are in the tiers, their keys are added to the match. With a kv_event_log, each block that has
// entered or left the prefix tree since the last grant is reported to it.
#pragma once

#include "actors/kv/block_pool.hpp"
#include "actors/kv/kv_event_log.hpp"
#include "actors/messages.hpp"
#include "actors/offloader/kv_tiers.hpp"

namespace twill::actors {

/// `now` lets the tiers recognize a disk that hangs. With tiers or a log, the pool must give blocks
/// names, which are hashes of their prefixes (block_pool::name_blocks).
kv_grant grant_blocks(block_pool& pool, const block_request& request, kv_tiers* tiers = nullptr,
                      steady_clock::time_point now = steady_clock::now(),
                      kv_event_log* log = nullptr);

} // namespace twill::actors
