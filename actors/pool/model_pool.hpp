// model_pool: several models behind one engine_port. It has an engine for each model that is awake,
// and holds the requests for models that are not.
//
// pool_state makes the decisions, and model_pool carries them out. A request goes straight to its
// model's engine if the model is awake. Otherwise it is held here until the engine is ready, within
// the request's own timeouts and within the bounds of a queue (`scheduler.max_queued`,
// `max_prompts`, `tenants.max_queued`).
//
// Threads: any thread may call the port. The pool has threads of its own: the dispatcher carries
// out decisions, delivers refusals and checks deadlines; the threads of the loader (model_loader)
// run long operations. All of them sleep while nothing happens. One mutex guards the state; it is
// never held while a callback runs or an engine starts or ends. An engine is destroyed only when no
// request is under way in it.
#pragma once

#include <cstdint>
#include <memory>

#include "actors/engine.hpp"
#include "actors/pool/pool_parts.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// Serves `options.models` within `budget_bytes` of device memory.
std::unique_ptr<engine> start_pool(const config::options& options, std::int64_t budget_bytes,
                                   pool_parts parts);

} // namespace twill::actors
