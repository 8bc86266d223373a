// supervisor: the actor that owns every lifecycle: it loads the model, starts and restarts the
// executor, the batcher and the kv_allocator, watches deadlines, ends drains, stops everything.
#pragma once

#include "actors/detail/engine_shared.hpp"
#include "actors/executor/step_runner.hpp"
#include "actors/interfaces.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::actors {

supervisor_actor spawn_supervisor(caf::actor_system& system, engine_shared_ptr shared,
                                  runner_factory make_runner,
                                  models::offload::store_opener open_kv_store);

} // namespace twill::actors
