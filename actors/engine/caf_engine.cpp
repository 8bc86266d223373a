#include "actors/engine/caf_engine.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

#include "actors/detail/counted_actor.hpp"
#include "actors/detail/engine_shared.hpp"
#include "actors/engine/text_port.hpp"
#include "actors/kv/cache_scope.hpp"
#include "actors/offloader/kept_folder.hpp"
#include "actors/session/prompt.hpp"
#include "actors/session/session_actor.hpp"
#include "actors/supervisor/supervisor_actor.hpp"
#include "config/base/log.hpp"

namespace twill::actors {

namespace {

/// When a thread spawns an actor, CAF stores for this thread a reference to the actor system's
/// logger. An actor system waits at its end until no thread has such a reference. Threads outside
/// the engine must not delay its end, so they drop the reference.
struct logger_scope {
  ~logger_scope() { caf::logger::set_current_actor_system(nullptr); }
};

/// If KV blocks on disk outlive the process (`kv.keep`), uses the key that is stored beside the
/// blocks to hash cache scopes (they say which requests share cached prefixes, see
/// actors/kv/cache_scope.hpp). With another key the blocks would not be found again. Must be called
/// before the first request.
kept_folder_lock keep_scopes(const config::options& options) {
  const auto& kv = options.kv;
  if (!kv.keep || kv.disk_memory_bytes == 0) return {};
  auto kept = keep_scope_key(kv.disk_dir);
  if (kept.ok()) return std::move(kept).value();
  log::warn("KV blocks on disk are of no use after a restart: " + kept.detail());
  return {};
}

engine_shared_ptr share(const config::options& options, std::shared_ptr<tenant_budgets> budgets,
                        std::shared_ptr<kv_event_log> log) {
  auto shared = std::make_shared<engine_shared>(options, std::move(budgets));
  if (!log && !options.kv.events.endpoint.empty()) log = std::make_shared<kv_event_log>();
  shared->kv_log = std::move(log);
  return shared;
}

class caf_engine final : public engine, public text_port {
public:
  caf_engine(const config::options& options, runner_factory make_runner,
             std::shared_ptr<tenant_budgets> budgets, std::shared_ptr<kv_event_log> log,
             models::offload::store_opener open_kv_store)
      : kept_(keep_scopes(options)), shared_(share(options, std::move(budgets), std::move(log))),
        system_(config_), supervisor_(spawn_supervisor(system_, shared_, std::move(make_runner),
                                                       std::move(open_kv_store))) {}

  ~caf_engine() override {
    shared_->requests.silence_all();
    tell_from_outside(supervisor_, stop_engine{});
    supervisor_ = supervisor_actor{};
    system_.await_all_actors_done();
    shared_->text_pool.reset();
    shared_->requests.clear(); // handles must not outlive the actor system
    if (shared_->kv_log) shared_->kv_log->end();
  }

  engine_port& port() override { return *this; }
  void reload(const config::options& options) override {
    shared_->reload(options);
    if (shared_->kv_log) shared_->kv_log->use_scope(published_scope(options.kv, options.tenants));
  }

  request_id submit(request asked, event_callback on_event) override {
    const logger_scope dropped;
    const request_id id = next_id_.fetch_add(1, std::memory_order_relaxed);
    std::shared_ptr<request_control> control;
    try {
      control = std::make_shared<request_control>();
      start(id, std::move(asked), control, on_event);
    } catch (const std::bad_alloc&) {
      shared_->requests.erase(id, false, steady_clock::now());
      event refused;
      refused.error = request_error{errc::executor_failed, "out of memory", ""};
      refused.last = true;
      if (!control || !control->ended.exchange(true)) on_event(std::move(refused));
    }
    return id;
  }

private:
  void start(request_id id, request asked, const std::shared_ptr<request_control>& control,
             const event_callback& on_event) {
    const auto& options = shared_->options;
    const auto current = shared_->current();
    session_args args;
    args.id = id;
    const bool has_waited = asked.arrived != steady_clock::time_point{};
    args.submitted = has_waited ? asked.arrived : steady_clock::now();
    args.limits = current->limits;
    args.control = control;
    args.on_event = on_event;
    auto timeout = asked.timeout;
    if (const auto most = current->limits.request_timeout; most.count() > 0)
      timeout = timeout.count() > 0 ? std::min(timeout, most) : most;
    live_requests::entry entry;
    entry.control = args.control;
    if (timeout.count() > 0) entry.deadline = args.submitted + timeout;
    args.prompt_bytes = prompt_bytes(asked.prompt);
    entry.bytes = args.prompt_bytes;
    entry.client = asked.client;
    // The pointer shares ownership of all options that were in force when the request came.
    args.tenant = std::shared_ptr<const config::tenant_options>(
        current, config::find_tenant(current->tenants, asked.tenant));
    args.budget = shared_->budget_of(asked.tenant);
    args.cache_scope = cache_scope(options.kv.share_prefixes ? "" : asked.tenant, asked.cache_salt);
    if (const auto patience = current->queue_timeout; patience.count() > 0)
      entry.queue_deadline = args.submitted + patience;
    if (args.tenant != nullptr && args.tenant->max_queued > 0) {
      const std::int32_t own = args.tenant->max_running;
      entry.most_of_client =
          static_cast<std::size_t>(args.tenant->max_queued) +
          static_cast<std::size_t>(own > 0 ? own : options.scheduler.max_running);
    }
    auto refusal = refused_at_once(asked, args.budget.get());
    args.request = std::move(asked);
    entry.session = spawn_session(system_, shared_, std::move(args));
    const session_actor session = entry.session;
    const bool draining = shared_->requests.draining();
    const auto inserted = shared_->requests.insert(id, std::move(entry), steady_clock::now());
    if (inserted.start_watching) tell_from_outside(supervisor_, watch_deadlines{});
    start_request start;
    if (draining)
      start.refusal = shutting_down();
    else if (refusal)
      start.refusal = std::move(refusal);
    else if (inserted.refused != nullptr)
      start.refusal = {errc::queue_full, std::string(inserted.refused) + "; retry later", ""};
    tell_from_outside(session, std::move(start));
  }

  /// Refusals that can be decided without looking at the prompt.
  std::optional<request_error> refused_at_once(const request& asked, token_budget* budget) const {
    if (asked.priority != 0 && shared_->options.scheduler.policy == "fcfs")
      return request_error{errc::invalid_argument,
                           "`priority` must be 0 or absent where `scheduler.policy` is fcfs, got " +
                               std::to_string(asked.priority),
                           "priority"};
    if (budget == nullptr) return std::nullopt;
    if (const auto wait_s = budget->check(1, steady_clock::now()))
      return rate_limited(*budget, *wait_s);
    return std::nullopt;
  }

public:
  void cancel(request_id id) override {
    if (auto entry = shared_->requests.find(id)) {
      entry->control->silenced = true;
      tell_from_outside(entry->session, cancel_request{});
    }
  }
  void pause(request_id id) override {
    const auto surplus = shared_->requests.pause(id);
    if (auto entry = shared_->requests.find(id))
      tell_from_outside(entry->session, pause_request{id});
    if (surplus)
      tell_from_outside(
          *surplus,
          abort_request{{errc::slow_reader,
                         "too many requests wait for their readers (`scheduler.max_paused`, "
                         "`scheduler.max_prompts`), and this client has the most of them; read "
                         "output, give credit, or submit requests later",
                         ""}});
  }
  void resume(request_id id) override {
    shared_->requests.resume(id);
    if (auto entry = shared_->requests.find(id))
      tell_from_outside(entry->session, resume_request{id});
  }

  engine_state state() const override { return shared_->state(); }
  std::string state_detail() const override {
    if (state() == engine_state::draining) return "the server is shutting down";
    return shared_->detail();
  }

  std::vector<model_info> models() const override {
    const served_model_ptr model = shared_->model();
    if (!model) return {};
    model_info info;
    info.id = model->id;
    // A configured name is the model's only name.
    if (shared_->options.model.name.empty()) info.other_names = model->files->other_names;
    info.path = model->files->path;
    info.family = model->files->spec.family;
    info.quantization = model->files->quantization;
    info.created_unix_s = model->created_unix_s;
    info.max_model_len = static_cast<std::int32_t>(
        std::min<std::int64_t>(model->max_context_tokens, model->kv_tokens));
    info.vocab_size = model->files->text->vocab_size();
    info.embedding_size = model->files->spec.embedding_size;
    info.has_chat_template = model->files->has_chat();
    info.default_sampling = model->files->default_sampling;
    config::put_configured(shared_->current()->sampling, info.default_sampling);
    return {info};
  }

  engine_stats stats() const override {
    engine_stats snapshot = shared_->stats.read();
    snapshot.state = state();
    return snapshot;
  }

  std::vector<tenant_stats> tenants() const override { return shared_->stats.read_tenants(); }

  std::vector<mailbox_depth> mailboxes() const override {
    const std::string model = shared_->model() ? shared_->model()->id : shared_->options.model.name;
    std::vector<mailbox_depth> all;
    for (std::size_t kind = 0; kind < actor_kind_names.size(); ++kind)
      all.push_back(
          {model, actor_kind_names[kind], std::max<std::int64_t>(config_.depths->depth(kind), 0)});
    return all;
  }

  std::vector<kv_event_feed> kv_events() const override {
    if (!shared_->kv_log) return {};
    return {{"", shared_->kv_log}};
  }

  void describe(std::function<void(std::vector<scheduler_snapshot>)> callback) const override {
    const batcher_actor batcher = shared_->batcher();
    if (!batcher) return callback({});
    describe_scheduler order;
    order.callback = std::make_shared<const std::function<void(scheduler_snapshot)>>(
        [callback = std::move(callback), shared = shared_](scheduler_snapshot snapshot) {
          if (const auto model = shared->model()) snapshot.model = model->id;
          callback({std::move(snapshot)});
        });
    tell_from_outside(batcher, std::move(order));
  }

  void account(std::function<void(ledger)> callback) const override {
    ask_ledger order;
    order.callback = std::make_shared<const std::function<void(ledger)>>(
        [callback = std::move(callback), shared = shared_](ledger all) {
          shared->account(all);
          callback(std::move(all));
        });
    const batcher_actor batcher = shared_->batcher();
    if (!batcher) return (*order.callback)({});
    tell_from_outside(batcher, std::move(order));
  }

  void drain(std::function<void()> drained) override {
    shared_->requests.drain(std::move(drained));
    tell_from_outside(supervisor_, check_drained{});
  }
  void abort_all() override { tell_from_outside(supervisor_, abort_all_requests{shutting_down()}); }

private:
  static request_error shutting_down() {
    return {errc::shutting_down, "the server is shutting down; retry later", ""};
  }

  result<served_model_ptr> text_model(const std::string& id) const override {
    served_model_ptr model = shared_->model();
    if (!model) return failure{errc::not_ready, shared_->not_ready_message()};
    if (!id.empty() && id != model->id)
      return failure{errc::unknown_model,
                     "`model` must be \"" + model->id + "\", got \"" + id + "\""};
    return model;
  }

  kept_folder_lock kept_; ///< held while the engine may use the folder of kept KV
  engine_shared_ptr shared_;
  engine_config config_;
  caf::actor_system system_;
  supervisor_actor supervisor_;
  std::atomic<request_id> next_id_{1};
};

} // namespace

std::unique_ptr<engine> start_engine_with(const config::options& options,
                                          runner_factory make_runner,
                                          std::shared_ptr<tenant_budgets> budgets,
                                          std::shared_ptr<kv_event_log> log,
                                          models::offload::store_opener open_kv_store) {
  return std::make_unique<caf_engine>(options, std::move(make_runner), std::move(budgets),
                                      std::move(log), std::move(open_kv_store));
}

} // namespace twill::actors
