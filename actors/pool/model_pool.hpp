// model_pool: several models behind one engine_port: an engine for each that is awake, and the
// requests of those that are not.
//
// pool_state decides; this carries out. A request goes straight to its model's engine where that is
// awake. Otherwise it is held here until the engine is ready, within the request's own time-outs
// and within the bounds that a queue has (`scheduler.max_queued`, `max_prompts`,
// `tenants.max_queued`).
//
// Threads: any thread may call the port. Two threads belong to the pool: the clerk carries out what
// is decided, delivers refusals and watches the time; the loader does what takes long (opening
// files, starting and destroying engines). Both sleep while nothing happens. One mutex guards
// everything; it is never held while a callback runs or an engine starts or ends. An engine is
// destroyed only when no request is under way in it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/detail/served_model.hpp"
#include "actors/engine.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// A model whose files are open.
struct opened_model {
  served_model_ptr text;       ///< for tokenizer calls, which need no weights in memory
  std::int64_t need_bytes = 0; ///< of device memory, when it is loaded
  std::int64_t kv_bytes = 0;   ///< of these, for KV
};

/// What the pool cannot do by itself; tests pass their own. Called on the loader's thread, with the
/// model's place in `options.models`; they may throw.
struct pool_parts {
  std::function<result<opened_model>(std::size_t model)> open;
  /// An engine that loads the model within so much device memory.
  std::function<std::unique_ptr<engine>(std::size_t model, const opened_model& opened,
                                        std::int64_t grant_bytes)>
      start;
};

/// `options.models` are served within `budget_bytes` of device memory.
std::unique_ptr<engine> start_pool(const config::options& options, std::int64_t budget_bytes,
                                   pool_parts parts);

} // namespace twill::actors
