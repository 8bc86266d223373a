// start_engine_with: starts the engine with any step_runner (the class that runs the model's
// steps). start_engine passes decoder_runner, and tests pass runners of their own. The guarantees
// of actors/engine.hpp apply.
#pragma once

#include <memory>

#include "actors/engine.hpp"
#include "actors/executor/step_runner.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::actors {

class kv_event_log;
class tenant_budgets;

/// `budgets` limit the tokens per minute of tenants and are shared with other engines; null: the
/// engine creates its own. `log` is the KV event log of the model, which the engine shares with
/// earlier and later engines of the model; null: the engine creates one if `kv.events` is set.
/// `open_kv_store` is for tests: it opens a store for KV blocks that takes the place of the file on
/// disk.
std::unique_ptr<engine> start_engine_with(const config::options& options,
                                          runner_factory make_runner,
                                          std::shared_ptr<tenant_budgets> budgets = nullptr,
                                          std::shared_ptr<kv_event_log> log = nullptr,
                                          models::offload::store_opener open_kv_store = {});

} // namespace twill::actors
