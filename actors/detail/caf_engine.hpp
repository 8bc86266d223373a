// start_engine_with: the engine over any step runner. Production passes decoder_runner, tests
// script their own. Same promises as actors/engine.hpp.
#pragma once

#include <memory>

#include "actors/engine.hpp"
#include "actors/executor/step_runner.hpp"

namespace twill::actors {

std::unique_ptr<engine> start_engine_with(const config::options& options,
                                          runner_factory make_runner);

} // namespace twill::actors
