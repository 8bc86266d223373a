// session: the actor of one request. Its logic is in actors/session/session_core.hpp.
#pragma once

#include "actors/detail/engine_shared.hpp"
#include "actors/interfaces.hpp"
#include "actors/session/session_core.hpp"

namespace twill::actors {

/// The new actor waits for start_request and ends by itself when the request is over. Any thread
/// may call this.
session_actor spawn_session(caf::actor_system& system, engine_shared_ptr shared, session_args args);

} // namespace twill::actors
