// offloader: the actor that owns the KV tiers off the device. Its logic is in
// actors/offloader/offloader_core.hpp. It has a thread of its own, since opening a kept file takes
// time; reads and writes are done by the core's threads.
#pragma once

#include <memory>

#include "actors/interfaces.hpp"
#include "actors/offloader/offloader_core.hpp"

namespace twill::actors {

/// The core is open already where the actor takes another one's place.
offloader_actor spawn_offloader(caf::actor_system& system, std::shared_ptr<offloader_core> core,
                                bool open);

} // namespace twill::actors
