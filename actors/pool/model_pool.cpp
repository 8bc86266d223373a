#include "actors/pool/model_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "actors/engine/text_port.hpp"
#include "actors/pool/gathering.hpp"
#include "actors/pool/held_requests.hpp"
#include "actors/pool/loader_reports.hpp"
#include "actors/pool/model_loader.hpp"
#include "actors/pool/pool_state.hpp"
#include "actors/pool/pooled_models.hpp"
#include "actors/pool/request_router.hpp"
#include "actors/pool/sum_stats.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"

namespace twill::actors {

namespace {

using steady_clock = std::chrono::steady_clock;

std::vector<pool_state::model_rules> rules_of(const config::options& options) {
  std::vector<pool_state::model_rules> rules;
  for (const auto& model : options.models)
    rules.push_back({model.pin, model.keep_alive});
  return rules;
}

class model_pool final : public engine, public text_port {
public:
  model_pool(const config::options& options, std::int64_t budget_bytes, pool_parts parts)
      : options_(options), models_(options.models), device_is_lost_(parts.device_is_lost),
        budgets_(parts.budgets), kv_events_(parts.kv_events),
        state_(rules_of(options), {budget_bytes, options.scheduler.restart_delay,
                                   options.scheduler.restart_delay_max}),
        router_(mutex_, state_, models_, [this] { changed_.notify_one(); }),
        loader_(options.models.size(), std::move(parts), reports()) {
    state_.begin(steady_clock::now());
    dispatcher_ = std::thread([this] { run_dispatcher(); });
  }

  ~model_pool() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      router_.stop_events();
    }
    changed_.notify_all();
    dispatcher_.join();
    loader_.stop();
    models_.end_engines();
  }

  engine_port& port() override { return *this; }
  void reload(const config::options& options) override {
    const std::lock_guard lock(mutex_);
    options_.limits = options.limits;
    options_.sampling = options.sampling;
    options_.tenants = options.tenants;
    options_.scheduler.queue_timeout = options.scheduler.queue_timeout;
    for (std::size_t m = 0; m < models_.size(); ++m)
      if (auto* running = models_.running(m)) running->reload(options_);
  }

  request_id submit(request asked, event_callback on_event) override {
    const request_id id = next_id_.fetch_add(1, std::memory_order_relaxed);
    held_request_ptr held;
    try {
      held = std::make_shared<held_request>();
      held->id = id;
      held->asked = std::move(asked);
      held->on_event = on_event;
      engine_port* to = nullptr;
      {
        const std::lock_guard lock(mutex_);
        apply_orders(); // earlier orders about waiting requests must not apply to this one
        to = router_.take_in(held, options_);
      }
      if (to != nullptr)
        router_.send(held, *to);
      else
        changed_.notify_one();
    } catch (const std::bad_alloc&) {
      router_.give_up(held, on_event);
    }
    return id;
  }

  void cancel(request_id id) override {
    const std::lock_guard lock(mutex_);
    apply_orders();
    router_.cancel(id);
  }

  void pause(request_id id) override {
    const std::lock_guard lock(mutex_);
    router_.set_paused(id, true);
  }
  void resume(request_id id) override {
    const std::lock_guard lock(mutex_);
    router_.set_paused(id, false);
  }

  engine_state state() const override {
    const std::lock_guard lock(mutex_);
    if (device_is_lost_()) return engine_state::lost;
    const auto state = models_.state(state_);
    return router_.draining() && state != engine_state::lost ? engine_state::draining : state;
  }
  std::string state_detail() const override {
    const std::lock_guard lock(mutex_);
    if (auto lost = models_.lost_detail(); !lost.empty()) return lost;
    // no engine has reported it, or the engine that did is gone
    if (device_is_lost_()) return "the device is lost";
    return router_.draining() ? "the server is shutting down" : models_.state_detail(state_);
  }
  std::vector<model_info> models() const override {
    const std::lock_guard lock(mutex_);
    std::vector<model_info> all;
    for (std::size_t m = 0; m < models_.size() && state_.begun(); ++m)
      all.push_back(models_.describe(m, state_, options_.sampling));
    return all;
  }
  engine_stats stats() const override {
    engine_stats sum;
    for (const auto& one : stats_of_models())
      add_stats(sum, one.stats);
    sum.state = state();
    return sum;
  }
  std::vector<model_stats> stats_of_models() const override {
    const std::lock_guard lock(mutex_);
    return models_.stats(state_);
  }
  std::vector<tenant_stats> tenants() const override {
    const std::lock_guard lock(mutex_);
    return models_.tenants();
  }

  std::vector<mailbox_depth> mailboxes() const override {
    const std::lock_guard lock(mutex_);
    std::vector<mailbox_depth> all;
    for (std::size_t m = 0; m < models_.size(); ++m) {
      if (models_.running(m) == nullptr) continue;
      for (auto& one : models_.port(m).mailboxes())
        all.push_back({models_.id(m), std::move(one.actor), one.depth});
    }
    return all;
  }

  std::vector<kv_event_feed> kv_events() const override { return kv_events_; }

  /// Calls `callback` when the last engine has answered or has ended.
  void describe(std::function<void(std::vector<scheduler_snapshot>)> callback) const override {
    const auto gathered =
        std::make_shared<gathering<std::vector<scheduler_snapshot>>>(std::move(callback));
    const std::lock_guard lock(mutex_);
    for (std::size_t m = 0; m < models_.size(); ++m) {
      if (models_.running(m) == nullptr) continue;
      models_.port(m).describe([gathered](std::vector<scheduler_snapshot> snapshots) {
        gathered->change([&](std::vector<scheduler_snapshot>& all) {
          for (auto& snapshot : snapshots)
            all.push_back(std::move(snapshot));
        });
      });
    }
  }

  void account(std::function<void(ledger)> callback) const override {
    const auto gathered = std::make_shared<gathering<ledger>>(std::move(callback));
    const std::lock_guard lock(mutex_);
    gathered->change([this](ledger& all) {
      router_.requests().account(all);
      if (budgets_) budgets_->account(all);
    });
    for (std::size_t m = 0; m < models_.size(); ++m) {
      const std::string prefix = models_.id(m) + ": ";
      gathered->change([&](ledger& all) { router_.account_model(m, prefix, all); });
      if (models_.running(m) == nullptr) continue;
      models_.port(m).account([gathered, prefix](const ledger& part) {
        gathered->change(
            [&](ledger& all) { all.add(part, prefix, tenant_budgets::charged_tokens); });
      });
    }
  }

  result<model_info> order_model(const std::string& name, model_order what) override {
    const std::lock_guard lock(mutex_);
    const auto found = models_.find_for_order(name);
    if (!found) return models_.unknown(name);
    if (router_.draining()) return failure{errc::shutting_down, shutting_down().message};
    const auto now = steady_clock::now();
    switch (what) {
    case model_order::load:
      state_.ask_load(*found, now);
      break;
    case model_order::sleep:
      state_.ask_sleep(*found, now);
      break;
    case model_order::unload:
      state_.ask_unload(*found, now);
      break;
    }
    changed_.notify_one();
    return models_.describe(*found, state_, options_.sampling);
  }

  void drain(std::function<void()> drained) override {
    const std::lock_guard lock(mutex_);
    router_.drain(std::move(drained));
    changed_.notify_one();
  }

  void abort_all() override {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, held] : router_.requests().all()) {
      apply_orders(); // the end of a request may have ordered to send another one
      router_.abort(held);
    }
    for (std::size_t m = 0; m < models_.size(); ++m)
      if (auto* running = models_.running(m)) running->port().abort_all();
    changed_.notify_one();
  }

private:
  result<served_model_ptr> text_model(const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    return models_.text(name, state_);
  }

  // The dispatcher.

  void run_dispatcher() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      auto wake = try_to_prepare(steady_clock::now());
      if (auto todo = router_.take_work(); !todo.empty()) {
        lock.unlock();
        router_.do_work(todo);
        lock.lock();
        continue;
      }
      if (wake)
        changed_.wait_until(lock, *wake);
      else
        changed_.wait(lock);
    }
  }

  std::optional<steady_clock::time_point> try_to_prepare(steady_clock::time_point now) {
    try {
      return prepare(now);
    } catch (const std::bad_alloc&) {
      return now + std::chrono::milliseconds(20); // the remaining work is done then
    }
  }

  /// Checks deadlines, and turns orders into work and jobs. Returns the time of the next check.
  std::optional<steady_clock::time_point> prepare(steady_clock::time_point now) {
    if (const auto at = state_.wake_at(); at && *at <= now) state_.woken(now);
    apply_orders();
    for (const auto& held : router_.requests().late(now)) {
      apply_orders(); // the end of a request may have ordered to send another one
      if (held->where == held_request::place::waiting)
        router_.end_waiting(held, waited_too_long(*held, models_.id(held->model), now));
    }
    apply_orders();
    auto wake = router_.requests().next_late(now);
    if (const auto at = state_.wake_at()) wake = wake ? std::min(*wake, *at) : at;
    return wake;
  }

  /// Carries out the orders of pool_state. When pool_state orders all waiting requests to be sent,
  /// it counts them as under way at once. So the orders must be carried out before another request
  /// begins to wait or a waiting one ends. If memory is too short for an order, the order stays
  /// first in the queue and is carried out again from its beginning.
  void apply_orders() {
    while (const auto* order = state_.next_order()) {
      std::visit([this](const auto& one) { carry_out(one); }, *order);
      state_.drop_order();
      changed_.notify_one();
    }
  }

  void carry_out(const pool_state::open& order) { loader_.open(order.model); }
  void carry_out(const pool_state::load& order) {
    log::info("loading model " + models_.id(order.model) + " into at most " +
              format_bytes(order.grant));
    loader_.load(order.model, models_.files(order.model), order.grant);
  }
  void carry_out(const pool_state::leave& order) {
    loader_.end(order.model, models_.port(order.model));
  }
  void carry_out(const pool_state::close& order) {
    loader_.close(models_.give_up_files(order.model));
  }
  void carry_out(const pool_state::send_waiting& order) { router_.send_waiting(order.model); }
  void carry_out(const pool_state::refuse_waiting& order) { router_.refuse_waiting(order.model); }

  // Reports of the loader, called on its threads.

  model_loader::reports reports() {
    return {[this](std::size_t m) {
              const std::lock_guard lock(mutex_);
              state_.fetching(m, steady_clock::now());
              changed_.notify_one();
            },
            [this](std::size_t m, result<opened_model>& opened) {
              const std::lock_guard lock(mutex_);
              record_opened(m, opened, models_, state_, router_.draining());
              changed_.notify_one();
            },
            [this](std::size_t m, result<std::unique_ptr<engine>>& started) {
              const std::lock_guard lock(mutex_);
              record_loaded(m, started, models_, state_, options_);
              changed_.notify_one();
            },
            [this](std::size_t m) {
              const std::lock_guard lock(mutex_);
              log::info("model " + models_.id(m) + " is put to sleep");
              return models_.give_up_engine(m);
            },
            [this](std::size_t m) {
              const std::lock_guard lock(mutex_);
              state_.left(m, steady_clock::now());
              changed_.notify_one();
            }};
  }

  mutable std::mutex mutex_;
  config::options options_;         ///< changed by a reload
  std::condition_variable changed_; ///< wakes the dispatcher
  pooled_models models_;
  const std::function<bool()> device_is_lost_;
  const std::shared_ptr<const tenant_budgets> budgets_;
  const std::vector<kv_event_feed> kv_events_;
  pool_state state_;
  request_router router_;
  std::atomic<request_id> next_id_{1};
  bool stopping_ = false;
  model_loader loader_;
  std::thread dispatcher_;
};

} // namespace

std::unique_ptr<engine> start_pool(const config::options& options, std::int64_t budget_bytes,
                                   pool_parts parts) {
  return std::make_unique<model_pool>(options, budget_bytes, std::move(parts));
}

} // namespace twill::actors
