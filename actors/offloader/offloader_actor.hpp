// offloader: the actor that owns the KV blocks in host memory and on disk: which blocks are there,
// and their transfers (offloader_core). The actor has a thread of its own but does no I/O on it: it
// only starts transfers that the I/O threads carry out.
#pragma once

#include <memory>

#include "actors/interfaces.hpp"
#include "actors/offloader/offloader_core.hpp"

namespace twill::actors {

/// `kv` is null for the first offloader, which gets its offloader_core with the message open_tiers.
/// An actor that replaces a failed offloader gets the offloader_core of that one.
offloader_actor spawn_offloader(caf::actor_system& system, std::shared_ptr<offloader_core> kv);

} // namespace twill::actors
