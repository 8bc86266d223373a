// executor: the actor that owns the device, the weights and the step loop, on its own thread.
//
// It makes its runner there with `make_runner` when told to load, and destroys it there after a
// failure, so that device libraries see one thread.
#pragma once

#include "actors/executor/step_runner.hpp"
#include "actors/interfaces.hpp"

namespace twill::actors {

executor_actor spawn_executor(caf::actor_system& system, runner_factory make_runner,
                              supervisor_actor supervisor);

} // namespace twill::actors
