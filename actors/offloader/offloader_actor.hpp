// offloader: the actor that owns the memory tiers beside the device (host memory and disk): the I/O
// threads, stores and budgets of streamed weights and KV blocks (tier_resources), and the index of
// which blocks are in which tier (offloader_core). The actor has a thread of its own but does no
// I/O on it: it only starts transfers that the I/O threads carry out.
#pragma once

#include <memory>

#include "actors/interfaces.hpp"
#include "actors/offloader/offloader_core.hpp"

namespace twill::actors {

/// `kv` is null for the first offloader, which gets its offloader_core with the message open_tiers.
/// An actor that replaces a failed offloader gets the offloader_core of that one. `resources`
/// outlive it, so streamed weights do not notice that an offloader fails.
offloader_actor spawn_offloader(caf::actor_system& system,
                                std::shared_ptr<models::offload::tier_resources> resources,
                                std::shared_ptr<offloader_core> kv);

} // namespace twill::actors
