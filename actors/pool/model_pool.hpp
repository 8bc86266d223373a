// model_pool: several models behind one engine_port: an engine for each that is awake, and the
// requests of those that are not.
//
// pool_state decides; this carries out. A request goes straight to its model's engine where that is
// awake. Otherwise it is held here until the engine is ready, within the request's own time-outs
// and within the bounds that a queue has (`scheduler.max_queued`, `max_prompts`,
// `tenants.max_queued`).
//
// Threads: any thread may call the port. The pool has threads of its own: the dispatcher carries
// out what is decided, delivers refusals and watches the time; those of the loader (model_loader)
// do what takes long. All sleep while nothing happens. One mutex guards the state; it is never held
// while a callback runs or an engine starts or ends. An engine is destroyed only when no request is
// under way in it.
#pragma once

#include <cstdint>
#include <memory>

#include "actors/engine.hpp"
#include "actors/pool/pool_parts.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// `options.models` are served within `budget_bytes` of device memory.
std::unique_ptr<engine> start_pool(const config::options& options, std::int64_t budget_bytes,
                                   pool_parts parts);

} // namespace twill::actors
