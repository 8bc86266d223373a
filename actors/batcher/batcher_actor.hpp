// batcher: the actor that owns the request queue and the running set. Its logic is in
// actors/batcher/batcher_core.hpp.
#pragma once

#include "actors/batcher/batcher_core.hpp"
#include "actors/interfaces.hpp"
#include "actors/offloader/kv_tiers.hpp"

namespace twill::actors {

/// The new actor plans no step until it receives the message executor_ready. It reports its inputs
/// and decisions to `observer`, which must not be null.
batcher_actor spawn_batcher(caf::actor_system& system, const batcher_limits& limits,
                            std::shared_ptr<stats_board> stats, kv_allocator_actor kv,
                            offloader_actor offloader, std::shared_ptr<const kv_tiers> tiers,
                            std::shared_ptr<batcher_observer> observer);

} // namespace twill::actors
