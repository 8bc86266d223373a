// offloader: the actor that owns the tiers off the device: I/O threads, stores and budgets of
// streamed weights and KV blocks (tier_resources), and which blocks are where (offloader_core). It
// has a thread of its own, on which it does no I/O: it only says what the I/O threads begin.
#pragma once

#include <memory>

#include "actors/interfaces.hpp"
#include "actors/offloader/offloader_core.hpp"

namespace twill::actors {

/// `kv` is null until open_tiers, but for an actor that takes another one's place. It begins with
/// the orders that another one has left.
offloader_actor spawn_offloader(caf::actor_system& system,
                                std::shared_ptr<models::offload::tier_resources> resources,
                                std::shared_ptr<offloader_core> kv);

} // namespace twill::actors
