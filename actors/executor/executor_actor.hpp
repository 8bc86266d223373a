// executor: the actor that owns the device, the weights and the step loop, on its own thread.
//
// The actor creates its runner with `make_runner` when it is ordered to load, and destroys it after
// a failure, both on the actor's thread, so that device libraries are used from one thread only.
// Streamed weights come from `tiers` (host memory and disk), which the supervisor owns. If the
// runner runs ahead (runner_info::runs_ahead), a step is launched while the one before it computes,
// and is answered when it has ended. Otherwise each step is answered before the next one begins.
#pragma once

#include <memory>

#include "actors/executor/step_runner.hpp"
#include "actors/interfaces.hpp"

namespace twill::actors {

executor_actor spawn_executor(caf::actor_system& system, runner_factory make_runner,
                              supervisor_actor supervisor,
                              std::shared_ptr<models::offload::tier_resources> tiers);

} // namespace twill::actors
