#include "actors/pool/model_pool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "actors/detail/holder_name.hpp"
#include "actors/detail/text_port.hpp"
#include "actors/pool/held_requests.hpp"
#include "actors/pool/model_loader.hpp"
#include "actors/pool/pool_state.hpp"
#include "actors/pool/pooled_models.hpp"
#include "actors/pool/sum_stats.hpp"
#include "actors/port/error_words.hpp"
#include "actors/port/request_summary.hpp"
#include "actors/session/prompt.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"

namespace twill::actors {

namespace {

using steady_clock = std::chrono::steady_clock;
using place = held_request::place;

std::vector<pool_state::model_rules> rules_of(const config::options& options) {
  std::vector<pool_state::model_rules> rules;
  for (const auto& model : options.models)
    rules.push_back({model.pin, model.keep_alive});
  return rules;
}

request_error shutting_down() {
  return {errc::shutting_down, "the server is shutting down; retry later", ""};
}

/// Calls request::on_end for a request that reached no engine.
void report_end(const held_request& held, std::string_view status, bool failed) {
  if (!held.asked.on_end) return;
  const auto now = steady_clock::now();
  request_summary about;
  about.id = held.id;
  about.client_id = held.asked.client_id;
  about.tenant = held.asked.tenant;
  about.model = held.asked.model;
  about.status = status;
  about.failed = failed;
  about.arrived = held.asked.arrived == steady_clock::time_point{} ? now : held.asked.arrived;
  about.total = now - about.arrived;
  about.sampling = &held.asked.sampling;
  held.asked.on_end(about);
}

class model_pool final : public engine, public text_port {
public:
  model_pool(const config::options& options, std::int64_t budget_bytes, pool_parts parts)
      : options_(options), models_(options.models), device_is_lost_(parts.device_is_lost),
        budgets_(parts.budgets), kv_events_(parts.kv_events),
        state_(rules_of(options), {budget_bytes, options.scheduler.restart_delay,
                                   options.scheduler.restart_delay_max}),
        loader_(options.models.size(), std::move(parts), reports()) {
    state_.begin(steady_clock::now());
    dispatcher_ = std::thread([this] { run_dispatcher(); });
  }

  ~model_pool() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const auto& [id, held] : requests_.all())
        held->silenced = true;
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
        to = take_in(held);
      }
      if (to != nullptr)
        send(held, *to);
      else
        changed_.notify_one();
    } catch (const std::bad_alloc&) {
      give_up(held, on_event);
    }
    return id;
  }

  void cancel(request_id id) override {
    const std::lock_guard lock(mutex_);
    apply_orders();
    const held_request_ptr held = requests_.find(id);
    if (!held) return;
    held->silenced = true;
    // A request being sent is cancelled by the sending thread, and a refused one is handled by the
    // dispatcher.
    if (held->where == place::sending || held->where == place::refused) return;
    if (held->where == place::sent)
      models_.port(held->model).cancel(held->inner);
    else
      report_end(*held, "cancelled", false);
    forget(*held);
    changed_.notify_one();
  }

  void pause(request_id id) override { set_paused(id, true); }
  void resume(request_id id) override { set_paused(id, false); }

  engine_state state() const override {
    const std::lock_guard lock(mutex_);
    if (device_is_lost_()) return engine_state::lost;
    const auto state = models_.state(state_);
    return draining_ && state != engine_state::lost ? engine_state::draining : state;
  }
  std::string state_detail() const override {
    const std::lock_guard lock(mutex_);
    if (auto lost = models_.lost_detail(); !lost.empty()) return lost;
    // no engine has reported it, or the engine that did is gone
    if (device_is_lost_()) return "the device is lost";
    return draining_ ? "the server is shutting down" : models_.state_detail(state_);
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
    struct gathering {
      std::mutex mutex;
      std::vector<scheduler_snapshot> all;
      std::function<void(std::vector<scheduler_snapshot>)> callback;
      ~gathering() { callback(std::move(all)); }
    };
    const auto gathered = std::make_shared<gathering>();
    gathered->callback = std::move(callback);
    const std::lock_guard lock(mutex_);
    for (std::size_t m = 0; m < models_.size(); ++m) {
      if (models_.running(m) == nullptr) continue;
      models_.port(m).describe([gathered](std::vector<scheduler_snapshot> snapshots) {
        const std::lock_guard own(gathered->mutex);
        for (auto& snapshot : snapshots)
          gathered->all.push_back(std::move(snapshot));
      });
    }
  }

  void account(std::function<void(ledger)> callback) const override {
    struct gathering {
      std::mutex mutex;
      ledger all;
      std::function<void(ledger)> callback;
      ~gathering() { callback(std::move(all)); }
    };
    const auto gathered = std::make_shared<gathering>();
    gathered->callback = std::move(callback);
    const std::lock_guard lock(mutex_);
    requests_.account(gathered->all);
    if (budgets_) budgets_->account(gathered->all);
    for (std::size_t m = 0; m < models_.size(); ++m) {
      const std::string prefix = models_.id(m) + ": ";
      account_model(m, prefix, gathered->all);
      if (models_.running(m) == nullptr) continue;
      models_.port(m).account([gathered, prefix](ledger part) {
        const std::lock_guard own(gathered->mutex);
        gathered->all.add(part, prefix, tenant_budgets::charged_tokens);
      });
    }
  }

  result<model_info> order_model(const std::string& name, model_order what) override {
    const std::lock_guard lock(mutex_);
    const auto found = models_.find_for_order(name);
    if (!found) return models_.unknown(name);
    if (draining_) return failure{errc::shutting_down, shutting_down().message};
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
    draining_ = true;
    drained_ = std::move(drained);
    changed_.notify_one();
  }

  void abort_all() override {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, held] : requests_.all()) {
      apply_orders(); // the end of a request may have ordered to send another one
      if (held->where == place::waiting) end_waiting(held, shutting_down());
      held->aborted = held->where == place::sending; // the sending thread then aborts it
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

  void account_model(std::size_t m, const std::string& prefix, ledger& to) const {
    const std::string under_way = prefix + "requests under way",
                      waiting = prefix + "requests that wait";
    to.taken(under_way, static_cast<std::int64_t>(state_.under_way(m)));
    to.taken(waiting, static_cast<std::int64_t>(state_.waiting(m)));
    for (const auto& [id, held] : requests_.all()) {
      if (held->model != m) continue;
      if (held->where == place::sent) to.held(under_way, prefix + holder_name(held->inner));
      if (held->where == place::sending) to.held(under_way, pool_holder_name(id));
      if (held->where == place::waiting) to.held(waiting, pool_holder_name(id));
    }
  }

  // Requests.

  /// Holds a new request, or refuses it. Returns the engine to which it must be sent now, or null.
  engine_port* take_in(const held_request_ptr& held) {
    apply_orders(); // earlier orders about waiting requests must not apply to this one
    requests_.add(held);
    const auto refuse = [&](request_error why) -> engine_port* {
      this->refuse(held, std::move(why));
      return nullptr;
    };
    if (draining_) return refuse(shutting_down());
    const auto found = models_.find(held->asked.model);
    if (!found)
      return refuse({errc::unknown_model, models_.unknown(held->asked.model).detail, "model"});
    const auto now = steady_clock::now();
    held->model = *found;
    held->asked.model = models_.id(*found);
    held->bytes = prompt_bytes(held->asked.prompt);
    if (state_.now(*found) != pool_state::phase::awake) {
      if (auto full = requests_.queue_full(*held, state_.waiting(*found), options_))
        return refuse(std::move(*full));
      requests_.begin_wait(*held, options_, now);
    }
    switch (state_.asked(*found, now)) {
    case pool_state::verdict::refuse:
      return refuse(not_ready(*found));
    case pool_state::verdict::send:
      held->where = place::sending;
      return &models_.port(*found);
    case pool_state::verdict::wait:
      break;
    }
    return nullptr;
  }

  /// Refuses a request. The dispatcher informs the client, so that no callback runs inside a call
  /// of the port.
  void refuse(const held_request_ptr& held, request_error why) {
    refused_.push_back(held);
    if (held->where == place::waiting) requests_.end_wait(*held);
    held->refusal = std::move(why);
    held->where = place::refused;
  }

  /// Refuses a waiting request. The state must not have ordered to send it.
  void end_waiting(const held_request_ptr& held, request_error why) {
    refuse(held, std::move(why));
    state_.gave_up(held->model, steady_clock::now());
  }

  request_error not_ready(std::size_t m) const {
    return {errc::not_ready,
            "the model " + models_.id(m) + " cannot be served" +
                (state_.now(m) == pool_state::phase::fetching ? " yet: " : ": ") + state_.detail(m),
            ""};
  }

  /// Sends a request to its engine. The request counts as under way, so the engine stays meanwhile.
  void send(const held_request_ptr& held, engine_port& to) {
    const request_id inner =
        to.submit(std::move(held->asked), [this, held](event e) { pass_on(held, std::move(e)); });
    const std::lock_guard lock(mutex_);
    held->inner = inner;
    held->where = place::sent;
    if (held->silenced || held->over) forget(*held);
    changed_.notify_one();
    if (held->over) return;
    try {
      if (held->silenced)
        to.cancel(inner);
      else if (held->aborted)
        to.abort_all(); // all other requests in this engine were aborted already
      else if (held->paused)
        to.pause(inner);
    } catch (const std::bad_alloc&) { // the request continues in the engine, which has it now
    }
  }

  /// Memory is too short to send a request: its client is informed, and the request is no longer
  /// counted.
  void give_up(const held_request_ptr& held, const event_callback& on_event) {
    if (held) {
      const std::lock_guard lock(mutex_);
      if (held->where == place::refused) return; // the dispatcher informs its client
      forget(*held);
      changed_.notify_one();
      if (held->silenced.exchange(true)) return;
    }
    event refused;
    refused.error = request_error{errc::executor_failed, "out of memory", ""};
    refused.last = true;
    on_event(std::move(refused));
  }

  void pass_on(const held_request_ptr& held, event e) {
    if (held->silenced) return;
    const bool last = e.last;
    held->on_event(std::move(e));
    if (!last) return;
    const std::lock_guard lock(mutex_);
    held->over = true;
    if (held->where == place::sending) return; // send() handles this case
    forget(*held);
    changed_.notify_one();
  }

  /// Removes a request that is over.
  void forget(const held_request& over) {
    const held_request_ptr held = requests_.find(over.id);
    if (!held) return;
    requests_.remove(*held);
    const auto now = steady_clock::now();
    if (held->where == place::sending || held->where == place::sent)
      return state_.ended(held->model, now);
    if (held->where != place::waiting) return;
    requests_.end_wait(*held);
    state_.gave_up(held->model, now);
  }

  void set_paused(request_id id, bool paused) {
    const std::lock_guard lock(mutex_);
    const held_request_ptr held = requests_.find(id);
    if (!held) return;
    held->paused = paused;
    if (held->where != place::sent) return;
    auto& port = models_.port(held->model);
    paused ? port.pause(held->inner) : port.resume(held->inner);
  }

  // The dispatcher.

  /// Work that is done without holding the mutex.
  struct work {
    std::vector<held_request_ptr> sends, refusals;
    std::function<void()> drained;
    bool empty() const { return sends.empty() && refusals.empty() && !drained; }
  };

  void run_dispatcher() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      auto wake = try_to_prepare(steady_clock::now());
      if (work todo = take_work(); !todo.empty()) {
        lock.unlock();
        do_work(todo);
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
    for (const auto& held : requests_.late(now)) {
      apply_orders(); // the end of a request may have ordered to send another one
      if (held->where == place::waiting)
        end_waiting(held, waited_too_long(*held, models_.id(held->model), now));
    }
    apply_orders();
    auto wake = requests_.next_late(now);
    if (const auto at = state_.wake_at()) wake = wake ? std::min(*wake, *at) : at;
    return wake;
  }

  work take_work() {
    work todo;
    todo.sends.swap(sends_);
    todo.refusals.swap(refused_);
    if (draining_ && requests_.empty()) todo.drained = std::exchange(drained_, nullptr);
    return todo;
  }

  void do_work(work& todo) {
    for (const auto& held : todo.refusals) {
      report_end(*held, word_of(held->refusal.code), true);
      event refused;
      refused.error = std::move(held->refusal);
      refused.last = true;
      if (!held->silenced.exchange(true)) held->on_event(std::move(refused));
      const std::lock_guard lock(mutex_);
      requests_.remove(*held);
    }
    // The engine stays: the requests count as under way.
    for (const auto& held : todo.sends) {
      try {
        send(held, models_.port(held->model));
      } catch (const std::bad_alloc&) {
        give_up(held, held->on_event);
      }
    }
    if (todo.drained) todo.drained();
  }

  /// Carries out the orders of the state. The state counts requests as under way once it has
  /// ordered to send them, so no request may begin or stop waiting before the orders were carried
  /// out. If memory is too short for an order, the order stays first in the queue and is carried
  /// out again from its beginning.
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
  void carry_out(const pool_state::send_waiting& order) {
    for (const auto& [id, held] : requests_.all()) {
      if (held->model != order.model || held->where != place::waiting) continue;
      sends_.push_back(held);
      requests_.end_wait(*held);
      held->where = place::sending;
    }
  }
  void carry_out(const pool_state::refuse_waiting& order) {
    for (const auto& [id, held] : requests_.all()) {
      if (held->model == order.model && held->where == place::waiting)
        refuse(held, draining_ ? shutting_down() : not_ready(order.model));
    }
    if (draining_ || state_.now(order.model) == pool_state::phase::fetching) return;
    log::error("the model " + models_.id(order.model) +
               " cannot be served: " + state_.detail(order.model));
  }

  // Reports of the loader, called on its threads.

  model_loader::reports reports() {
    return {[this](std::size_t m) {
              const std::lock_guard lock(mutex_);
              state_.fetching(m, steady_clock::now());
              changed_.notify_one();
            },
            [this](std::size_t m, result<opened_model>& opened) { take_files(m, opened); },
            [this](std::size_t m, result<std::unique_ptr<engine>>& started) {
              take_engine(m, started);
            },
            [this](std::size_t m) { return give_up_engine(m); },
            [this](std::size_t m) {
              const std::lock_guard lock(mutex_);
              state_.left(m, steady_clock::now());
              changed_.notify_one();
            }};
  }

  void take_files(std::size_t m, result<opened_model>& opened) {
    const std::lock_guard lock(mutex_);
    const auto now = steady_clock::now();
    const bool was_fetched = state_.now(m) == pool_state::phase::fetching;
    // waiting requests learn of the failure from their refusal
    const bool somebody_waits = state_.waiting(m) > 0;
    if (opened.ok()) {
      models_.take_files(m, std::move(opened).value());
      state_.opened(m, models_.files(m)->need_bytes, now);
      if (was_fetched) log::info("the model " + models_.id(m) + " is here");
    } else {
      state_.open_failed(m, opened.detail(), now);
      if (!somebody_waits && !draining_)
        log::error("the model " + models_.id(m) + " cannot be served: " + opened.detail());
    }
    changed_.notify_one();
  }

  void take_engine(std::size_t m, result<std::unique_ptr<engine>>& started) {
    const std::lock_guard lock(mutex_);
    const auto now = steady_clock::now();
    if (started.ok()) {
      // the options may have been reloaded since the daemon began
      started.value()->reload(options_);
      models_.take_engine(m, std::move(started).value());
      state_.loaded(m, now);
    } else {
      log::error("the model " + models_.id(m) + " cannot be loaded: " + started.detail());
      state_.load_failed(m, started.detail(), now);
    }
    changed_.notify_one();
  }

  std::unique_ptr<engine> give_up_engine(std::size_t m) {
    const std::lock_guard lock(mutex_);
    log::info("model " + models_.id(m) + " is put to sleep");
    return models_.give_up_engine(m);
  }

  mutable std::mutex mutex_;
  config::options options_;         ///< changed by a reload
  std::condition_variable changed_; ///< wakes the dispatcher
  pooled_models models_;
  const std::function<bool()> device_is_lost_;
  const std::shared_ptr<const tenant_budgets> budgets_;
  const std::vector<kv_event_feed> kv_events_;
  pool_state state_;
  held_requests requests_;
  std::vector<held_request_ptr> sends_, refused_; ///< requests for the dispatcher
  std::function<void()> drained_;
  std::atomic<request_id> next_id_{1};
  bool draining_ = false, stopping_ = false;
  model_loader loader_;
  std::thread dispatcher_;
};

} // namespace

std::unique_ptr<engine> start_pool(const config::options& options, std::int64_t budget_bytes,
                                   pool_parts parts) {
  return std::make_unique<model_pool>(options, budget_bytes, std::move(parts));
}

} // namespace twill::actors
