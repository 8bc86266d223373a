// start_engine_with: the engine over any step runner. start_engine passes decoder_runner, tests
// pass scripted runners. The promises of actors/engine.hpp hold.
#pragma once

#include <memory>

#include "actors/engine.hpp"
#include "actors/executor/step_runner.hpp"

namespace twill::actors {

class kv_event_log;
class tenant_budgets;

/// `budgets` are shared with other engines; null makes them. `log` is the model's over several
/// engines; null makes one where `kv.events` is given.
std::unique_ptr<engine> start_engine_with(const config::options& options,
                                          runner_factory make_runner,
                                          std::shared_ptr<tenant_budgets> budgets = nullptr,
                                          std::shared_ptr<kv_event_log> log = nullptr);

} // namespace twill::actors
