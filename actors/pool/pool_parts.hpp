// pool_parts: the operations that a pool of models gets from outside; tests pass their own.
//
// The functions get the model's index in `options.models`. They are called on the loader's thread
// unless their comment says otherwise. They may throw; the model then counts as one that cannot be
// fetched, opened or loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/detail/served_model.hpp"
#include "actors/detail/tenant_budgets.hpp"
#include "actors/engine.hpp"

namespace twill::actors {

/// A model whose files are open.
struct opened_model {
  served_model_ptr text;       ///< for tokenizer calls, which need no weights in memory
  std::int64_t need_bytes = 0; ///< device memory that the model takes when loaded
  std::int64_t kv_bytes = 0;   ///< the part of need_bytes for KV
};

struct pool_parts {
  /// Whether fetch() must be called before each open(). Called on the thread that starts the pool.
  std::function<bool(std::size_t model)> is_fetched = [](std::size_t) { return false; };
  /// Fetches the files of a model to this machine. Called on a thread of the model's own; when the
  /// pool ends, it waits for this thread. Calls `takes_long` before an operation that may take
  /// hours.
  std::function<void(std::size_t model, const std::function<void()>& takes_long)> fetch;
  std::function<result<opened_model>(std::size_t model)> open;
  /// Whether the device of all models is lost to this process. Any thread.
  std::function<bool()> device_is_lost = [] { return false; };
  /// Starts an engine that loads the model within `grant_bytes` of device memory.
  std::function<std::unique_ptr<engine>(std::size_t model, const opened_model& opened,
                                        std::int64_t grant_bytes)>
      start;
  /// The token budgets of tenants over all engines; null if they are not limited.
  std::shared_ptr<const tenant_budgets> budgets;
  /// The KV event sources of models with `kv.events`.
  std::vector<kv_event_feed> kv_events;
};

} // namespace twill::actors
