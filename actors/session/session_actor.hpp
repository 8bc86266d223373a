// session: the actor of one request. Logic: actors/session_core.hpp.
#pragma once

#include "actors/detail/engine_shared.hpp"
#include "actors/interfaces.hpp"
#include "actors/session/session_core.hpp"

namespace twill::actors {

/// Waits for start_request; ends by itself when the request is over. Any thread may call.
session_actor spawn_session(caf::actor_system& system, engine_shared_ptr shared, session_args args);

} // namespace twill::actors
