// engine_shared: the state that the engine_port (the interface to net/), the session actors and the
// supervisor actor share.
//
// Thread safety: `options` never change; `stats` and `requests` lock themselves; everything else is
// accessed through the functions below, under one mutex. The engine_port and the actors own the
// object jointly.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "actors/detail/live_requests.hpp"
#include "actors/detail/served_model.hpp"
#include "actors/detail/stats_board.hpp"
#include "actors/detail/tenant_budgets.hpp"
#include "actors/interfaces.hpp"
#include "actors/kv/kv_event_log.hpp"
#include "config/base/fair_pool.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// The outcome of admitting a new request: a refusal, or the model and its batcher.
struct admission {
  std::optional<request_error> refusal;
  served_model_ptr model;
  batcher_actor batcher;
  grammar_compiler_actor grammars;
};

/// The options that a reload changes.
struct reloadable_options {
  config::limit_options limits;
  config::sampling_options sampling;
  std::vector<config::tenant_options> tenants;
  std::chrono::milliseconds queue_timeout{0};
};

class engine_shared {
public:
  /// `budgets` are shared by all engines; null: the object creates its own.
  explicit engine_shared(const config::options& o,
                         std::shared_ptr<tenant_budgets> budgets = nullptr)
      : options(o), requests(bounds_of(o.scheduler)),
        text_pool(std::make_unique<fair_pool>(text_limits_of(o.scheduler))),
        shares_budgets_(budgets != nullptr),
        budgets_(budgets ? std::move(budgets)
                         : std::make_shared<tenant_budgets>(o.tenants, steady_clock::now())) {
    take(o); // the budgets may be shared with engines whose limits are newer
  }

  /// Null without `kv.events`.
  std::shared_ptr<kv_event_log> kv_log;
  /// the options at the start; values changed by a reload are only in current()
  const config::options options;
  stats_board stats;
  live_requests requests;
  /// Threads for the text work of long prompts. The port resets it once no session is left.
  std::unique_ptr<fair_pool> text_pool;

  /// The options that apply to new requests; a request keeps those with which it began.
  std::shared_ptr<const reloadable_options> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  /// Applies a reload. A tenant's used tokens stay counted, even if its limit changes.
  void reload(const config::options& o) {
    budgets_->reload(o.tenants, steady_clock::now());
    take(o);
  }

  /// The tokens that a tenant may use; null when they are not limited.
  std::shared_ptr<token_budget> budget_of(const std::string& tenant) const {
    return budgets_->of(tenant);
  }

  /// Adds the counters to the ledger. Budgets shared by several engines are added by their creator.
  void account(ledger& to) const {
    requests.account(to);
    to.taken("bytes of texts that wait", text_pool->waiting_bytes());
    if (!shares_budgets_) budgets_->account(to);
  }

  engine_state state() const {
    const std::lock_guard lock(mutex_);
    if (state_ == engine_state::lost) return state_;
    if (requests.draining()) return engine_state::draining;
    if (state_ == engine_state::ready && stalled_for() > stall_time()) return engine_state::stalled;
    return state_;
  }
  /// Why the engine is not ready; empty if it is.
  std::string detail() const {
    const std::lock_guard lock(mutex_);
    if (state_ != engine_state::ready || stalled_for() <= stall_time()) return detail_;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(stalled_for()).count();
    return "the step under way has not ended for " + std::to_string(seconds) +
           " s, which is longer than `scheduler.watchdog` allows; a disk or the device may hang";
  }
  /// The message for clients while no model can serve them.
  std::string not_ready_message() const {
    const std::lock_guard lock(mutex_);
    return locked_not_ready_message();
  }
  void set_state(engine_state state, std::string detail) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    detail_ = std::move(detail);
  }
  served_model_ptr model() const {
    const std::lock_guard lock(mutex_);
    return model_;
  }
  void set_model(served_model_ptr model) {
    const std::lock_guard lock(mutex_);
    model_ = std::move(model);
  }
  void set_grammars(grammar_compiler_actor grammars) {
    const std::lock_guard lock(mutex_);
    grammars_ = std::move(grammars);
  }
  void set_batcher(batcher_actor batcher) {
    const std::lock_guard lock(mutex_);
    batcher_ = std::move(batcher);
  }
  batcher_actor batcher() const {
    const std::lock_guard lock(mutex_);
    return batcher_;
  }
  /// Releases the actor handles.
  void close() {
    set_batcher(batcher_actor{});
    set_grammars(grammar_compiler_actor{});
  }

  admission admit() const {
    const std::lock_guard lock(mutex_);
    // Requests that come while the executor restarts wait in the queue.
    const bool open = state_ == engine_state::ready || state_ == engine_state::restarting;
    if (!open || !batcher_)
      return {request_error{errc::not_ready, locked_not_ready_message(), ""}, {}, {}, {}};
    return {std::nullopt, model_, batcher_, grammars_};
  }

private:
  void take(const config::options& o) {
    auto next = std::make_shared<reloadable_options>();
    next->limits = o.limits;
    next->sampling = o.sampling;
    next->tenants = o.tenants;
    next->queue_timeout = o.scheduler.queue_timeout;
    const std::lock_guard lock(mutex_);
    current_ = std::move(next);
  }

  static live_requests::limits bounds_of(const config::scheduler_options& o) {
    return {static_cast<std::size_t>(o.max_queued) + static_cast<std::size_t>(o.max_running),
            static_cast<std::size_t>(o.max_paused), o.max_prompts_bytes};
  }
  static fair_pool::limits text_limits_of(const config::scheduler_options& o) {
    const std::size_t threads = std::clamp(std::thread::hardware_concurrency() / 8, 1u, 4u);
    return {threads, o.max_text_bytes, o.text_timeout};
  }
  std::string locked_not_ready_message() const {
    if (state_ == engine_state::failed) return "the model cannot be served: " + detail_;
    if (state_ == engine_state::lost) return detail_ + "; the server ends, retry later";
    return "the model is still loading; retry later";
  }

  /// How long the oldest step under way has had no result. The watchdog, which finds steps that
  /// hang, has no thread, because its thread could hang together with the step. Instead, whoever
  /// asks for the engine's state computes this time.
  steady_clock::duration stalled_for() const { return stats.step_age(steady_clock::now()); }
  steady_clock::duration stall_time() const {
    const auto limit = options.scheduler.watchdog;
    return limit.count() > 0 ? steady_clock::duration(limit) : steady_clock::duration::max();
  }

  const bool shares_budgets_; ///< the budgets are shared with other engines
  const std::shared_ptr<tenant_budgets> budgets_;
  mutable std::mutex mutex_; ///< guards the members below
  std::shared_ptr<const reloadable_options> current_;
  engine_state state_ = engine_state::loading;
  std::string detail_ = "loading the model";
  served_model_ptr model_;
  batcher_actor batcher_;
  grammar_compiler_actor grammars_;
};
using engine_shared_ptr = std::shared_ptr<engine_shared>;

} // namespace twill::actors
