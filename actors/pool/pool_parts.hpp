// pool_parts: what the pool of models cannot do by itself; tests pass their own.
//
// The functions are called with the model's place in `options.models`, on the loader's thread but
// where they say otherwise. They may throw; the model then counts as one that cannot be fetched,
// opened or loaded.
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
  std::int64_t need_bytes = 0; ///< of device memory, when it is loaded
  std::int64_t kv_bytes = 0;   ///< of these, for KV
};

struct pool_parts {
  /// Whether fetch() comes before each open(). Called on the thread that starts the pool.
  std::function<bool(std::size_t model)> is_fetched = [](std::size_t) { return false; };
  /// Brings the files of a model to this machine. Called on a thread of the model's own, which a
  /// pool that ends waits for; calls `takes_long` before what may take hours.
  std::function<void(std::size_t model, const std::function<void()>& takes_long)> fetch;
  std::function<result<opened_model>(std::size_t model)> open;
  /// Whether the device of all models is lost to this process. Any thread.
  std::function<bool()> device_is_lost = [] { return false; };
  /// An engine that loads the model within so much device memory.
  std::function<std::unique_ptr<engine>(std::size_t model, const opened_model& opened,
                                        std::int64_t grant_bytes)>
      start;
  /// What tenants may use over all engines; null where nobody counts it.
  std::shared_ptr<const tenant_budgets> budgets;
  /// Of models with `kv.events`.
  std::vector<kv_event_feed> kv_events;
};

} // namespace twill::actors
