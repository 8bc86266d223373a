// executor: the actor that owns the device, the weights and the step loop, on its own thread.
//
// It makes its runner with `make_runner` when it is told to load, and destroys it after a failure,
// both on that thread, so that device libraries see one thread only. Streamed weights come from
// `tiers`, which are the offloader's. Where the runner runs ahead (runner_info), a step is launched
// while the one before it computes, and answered when it has ended; elsewhere a step is answered
// before the next one is looked at.
#pragma once

#include <memory>

#include "actors/executor/step_runner.hpp"
#include "actors/interfaces.hpp"

namespace twill::actors {

executor_actor spawn_executor(caf::actor_system& system, runner_factory make_runner,
                              supervisor_actor supervisor,
                              std::shared_ptr<models::offload::tier_resources> tiers);

} // namespace twill::actors
