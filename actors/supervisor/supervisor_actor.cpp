#include "actors/supervisor/supervisor_actor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "actors/batcher/batcher_actor.hpp"
#include "actors/detail/counted_actor.hpp"
#include "actors/executor/executor_actor.hpp"
#include "actors/kv/cache_scope.hpp"
#include "actors/kv/kv_allocator_actor.hpp"
#include "actors/offloader/offloader_actor.hpp"
#include "actors/session/output_plan.hpp"
#include "actors/structured/grammar_compiler_actor.hpp"
#include "actors/supervisor/lifecycle.hpp"
#include "actors/trace/recording.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "models/offload/streams/checksum.hpp"
#include "models/offload/streams/tier_resources.hpp"

namespace twill::actors {

namespace {

constexpr std::chrono::milliseconds deadline_tick{50};

/// Identifies what outputs depend on beside the tokens of their prompts: all that KV blocks depend
/// on, and the format in which an output is parsed.
std::uint64_t continuity_of(const config::options& options, const runner_info& info) {
  const std::string text = info.fingerprint + "\n" + options.model.tool_format;
  return models::offload::checksum(text.data(), std::ssize(text));
}

std::shared_ptr<served_model> make_served(const config::options& options, const runner_info& info) {
  auto served = make_served_text(options.model, info.model, info.max_context_tokens);
  served->kv_tokens = static_cast<std::int64_t>(info.n_blocks) * info.block_tokens;
  served->continuity = continuity_of(options, info);
  models::grammar::compile_limits limits;
  limits.timeout = options.structured.compile_timeout;
  limits.patience = options.structured.wait_timeout;
  limits.repeated_items = options.structured.repeated_items;
  limits.memory_bytes = options.structured.compile_memory_bytes;
  served->grammars = std::make_shared<grammar_service>(info.model, std::move(limits));
  return served;
}

class supervisor_state {
public:
  const char* name = "supervisor";

  void init(supervisor_actor::pointer self, engine_shared_ptr shared, runner_factory make_runner,
            models::offload::store_opener open_kv_store,
            std::shared_ptr<models::offload::tier_resources> tiers) {
    self_ = self;
    shared_ = std::move(shared);
    make_runner_ = std::move(make_runner);
    open_kv_store_ = std::move(open_kv_store);
    tiers_ = std::move(tiers);
    promise_kv_host_memory();
    start_offloader();
    const auto& delays = shared_->options.scheduler;
    lifecycle_.emplace(lifecycle::delays{delays.restart_delay, delays.restart_delay_max});
    self_->set_down_handler([this](caf::scheduled_actor*, caf::down_msg& down) { on_down(down); });
    note([](lifecycle& l) { l.begin(); });
  }

  void on_loaded(const model_loaded& loaded) {
    if (loaded.generation == lifecycle_->generation()) {
      info_ = loaded.info;
      if (offloading_ && info_.fingerprint != fingerprint_) offloading_->tiers()->retire();
      insist([this] { publish_model(); });
    }
    note([&](lifecycle& l) { l.loaded(loaded.generation, steady_clock::now()); });
  }
  void on_load_failed(const load_failed& failed) {
    if (failed.device_is_lost)
      return note([&](lifecycle& l) { l.device_lost(failed.generation, failed.detail); });
    note([&](lifecycle& l) {
      l.load_failed(failed.generation, failed.detail, steady_clock::now());
    });
  }
  void on_broken(const executor_broken& broken) {
    if (broken.device_is_lost)
      return note([&](lifecycle& l) { l.device_lost(broken.generation, broken.detail); });
    note([&](lifecycle& l) {
      l.step_failed(broken.generation, broken.detail, steady_clock::now());
    });
  }
  void on_woken() {
    note([](lifecycle& l) { l.woken(steady_clock::now()); });
  }

  void check_deadlines() {
    insist([this] {
      for (const auto& one : shared_->requests.take_expired(steady_clock::now()))
        insist([&] {
          if (one.waited)
            tell(self_, one.session, waited_too_long{one.id});
          else
            tell(self_, one.session, deadline_passed{});
        });
    });
    if (shared_->requests.keep_watching())
      insist([this] { tell_later(self_, self_, deadline_tick, actors::check_deadlines{}); });
  }

  void abort_all(const request_error& why) {
    insist([&] {
      for (const session_actor& session : shared_->requests.all())
        insist([&] { tell(self_, session, abort_request{why}); });
    });
  }

  void check_drained() { shared_->requests.check_drained(); }

  void stop() {
    lifecycle_->stop();
    self_->set_down_handler([](caf::scheduled_actor*, caf::down_msg&) {});
    insist([this] {
      for (const session_actor& session : shared_->requests.all())
        self_->send_exit(session, caf::exit_reason::user_shutdown);
      if (batcher_) self_->send_exit(batcher_, caf::exit_reason::user_shutdown);
      if (const auto model = shared_->model()) model->grammars->stop();
      if (grammars_) self_->send_exit(grammars_, caf::exit_reason::user_shutdown);
      if (kv_) self_->send_exit(kv_, caf::exit_reason::user_shutdown);
      self_->send_exit(offloader_, caf::exit_reason::user_shutdown);
      if (offloading_) offloading_->stop();
      self_->send_exit(executor_, caf::exit_reason::user_shutdown);
    });
    shared_->close();
    self_->quit();
  }

private:
  /// Calls `work`, and repeats it up to 20 times if it throws std::bad_alloc: if a report to the
  /// state machine or an order of it were lost, the engine would wait for ever.
  template <class F>
  static void insist(F&& work) {
    for (int tries = 0;; ++tries) {
      try {
        return work();
      } catch (const std::bad_alloc&) {
        if (tries == 20) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  }

  /// Reports a fact to the state machine and carries out its orders.
  template <class F>
  void note(F&& fact) {
    insist([&] {
      lifecycle next = *lifecycle_; // a fact is applied completely or not at all
      fact(next);
      auto orders = next.take_orders();
      orders_.insert(orders_.end(), orders.begin(), orders.end());
      *lifecycle_ = std::move(next);
    });
    if (lifecycle_->now() != lifecycle::phase::ready) insist([this] { publish(); });
    while (!orders_.empty()) {
      insist(
          [this] { std::visit([this](const auto& order) { carry_out(order); }, orders_.front()); });
      orders_.pop_front();
    }
    insist([this] { publish(); });
  }

  /// Publishes the served model and its sizes to sessions and the port.
  void publish_model() {
    const served_model_ptr before = shared_->model();
    if (!before) return shared_->set_model(make_served(shared_->options, info_));
    auto served = std::make_shared<served_model>(*before);
    served->max_context_tokens = info_.max_context_tokens;
    served->kv_tokens = static_cast<std::int64_t>(info_.n_blocks) * info_.block_tokens;
    served->continuity = continuity_of(shared_->options, info_);
    shared_->set_model(std::move(served));
  }

  /// Publishes the state of the state machine to /ready and clients.
  void publish() {
    const auto phase = lifecycle_->now();
    const bool is_wanted = phase == lifecycle::phase::loading || shared_->requests.draining();
    if (phase != lifecycle::phase::ready && lifecycle_->detail() != shared_->detail())
      (is_wanted ? log::info : log::error)(lifecycle_->detail());
    engine_state state = engine_state::ready;
    if (phase == lifecycle::phase::loading) state = engine_state::loading;
    if (phase == lifecycle::phase::restarting) state = engine_state::restarting;
    if (phase == lifecycle::phase::failed) state = engine_state::failed;
    if (phase == lifecycle::phase::lost) state = engine_state::lost;
    shared_->set_state(state, lifecycle_->detail());
  }

  // Orders.
  void carry_out(const lifecycle::start_executor&) {
    executor_ = spawn_executor(self_->system(), make_runner_, supervisor_actor{self_}, tiers_);
    self_->monitor(executor_);
  }
  void carry_out(const lifecycle::load& order) {
    if (order.generation > 1)
      shared_->stats.update([](engine_stats& s) { s.executor_restarts += 1; });
    tell(self_, executor_, load_model{order.generation, order.keep_weights});
  }
  void carry_out(const lifecycle::start_compiler&) {
    grammars_ = spawn_grammar_compiler(self_->system(), shared_->model()->grammars);
    self_->monitor(grammars_);
    shared_->set_grammars(grammars_);
  }
  void carry_out(const lifecycle::start_scheduler&) {
    open_kv_tiers();
    const auto tiers = offloading_ ? offloading_->tiers() : nullptr;
    begin_kv_log(tiers.get());
    kv_ = spawn_kv_allocator(self_->system(), info_.n_blocks, info_.block_tokens, tiers,
                             shared_->kv_log);
    self_->monitor(kv_);
    batcher_ = spawn_batcher(self_->system(), limits(),
                             std::shared_ptr<stats_board>(shared_, &shared_->stats), kv_,
                             tiers ? offloader_ : offloader_actor{}, tiers,
                             begin_recording(shared_->options.scheduler, shared_->model()->id,
                                             limits(), tiers != nullptr));
    self_->monitor(batcher_);
    shared_->set_batcher(batcher_);
  }
  void carry_out(const lifecycle::end_scheduler&) {
    shared_->set_batcher(batcher_actor{});
    self_->send_exit(batcher_, caf::exit_reason::kill);
    self_->send_exit(kv_, caf::exit_reason::kill);
  }
  void carry_out(const lifecycle::serve& order) {
    shared_->stats.update([&](engine_stats& s) {
      s.device_memory_reserved_bytes = info_.memory_used_bytes;
      s.device_weights_bytes = info_.weight_bytes;
      s.device_is_host = info_.memory_is_host;
      s.device_outside_bytes = info_.outside_bytes;
      s.kv_block_bytes = info_.kv_block_bytes;
      s.streamed = info_.streamed;
    });
    shared_->stats.set_untouched_bytes(info_.untouched_bytes);
    log::info((order.generation > 1 ? "the executor was restarted: model " : "model ") +
              shared_->model()->id + " is ready on " + info_.device + " with " +
              std::to_string(info_.n_blocks) + " KV blocks of " +
              std::to_string(info_.block_tokens) + " tokens each");
    tell(self_, batcher_, executor_ready{executor_, order.generation, limits()});
  }
  void carry_out(const lifecycle::move_requests& order) {
    const request_error why{errc::executor_failed, order.why, ""};
    for (const session_actor& session : shared_->requests.all())
      tell(self_, session, scheduler_replaced{batcher_, grammars_, why});
  }
  void carry_out(const lifecycle::end_requests& order) {
    publish(); // so that no new request is admitted
    abort_all(order.device_is_lost ? request_error::lost_with_device()
                                   : request_error{errc::executor_failed, order.why, ""});
  }
  void carry_out(const lifecycle::wake& order) {
    const auto left = order.at - steady_clock::now();
    tell_later(
        self_, self_,
        std::max(std::chrono::ceil<std::chrono::milliseconds>(left), std::chrono::milliseconds{0}),
        wake_supervisor{});
  }

  /// Starts the offloader, also as a replacement of one that ended.
  void start_offloader() {
    offloader_ = spawn_offloader(self_->system(), offloading_);
    self_->monitor(offloader_);
  }

  /// Creates the stores of KV blocks in host memory and on disk. Called when the first batcher is
  /// started and not earlier, because only a load determines the layout of a KV block.
  void open_kv_tiers() {
    const auto& kv = shared_->options.kv;
    if (offloading_ || !kv.prefix_cache) return;
    tier_options tiers;
    tiers.block_bytes = info_.kv_block_bytes;
    tiers.block_tokens = info_.block_tokens;
    tiers.device_blocks = info_.n_blocks;
    tiers.host_bytes = kv_host_bytes_;
    tiers.disk_bytes = kv.disk_memory_bytes;
    tiers.disk_dir = kv.disk_dir;
    tiers.keep = kv.keep;
    tiers.model_path = info_.model->path;
    tiers.fingerprint = fingerprint_ = info_.fingerprint;
    tiers.open_store = open_kv_store_;
    if (!tiers.any()) return;
    offloading_ = std::make_shared<offloader_core>(std::move(tiers), tiers_);
    offloading_->tiers()->report_to(shared_->kv_log);
    tell(self_, offloader_, open_tiers{offloading_});
  }

  /// Begins the KV event log anew: a new allocator has no blocks, but tiers outlive it.
  void begin_kv_log(const kv_tiers* tiers) {
    if (!shared_->kv_log) return;
    shared_->kv_log->begin(published_scope(shared_->options.kv, shared_->current()->tenants));
    if (tiers != nullptr) tiers->report_all();
  }

  /// Reserves the host memory of KV tiers before weights take it.
  void promise_kv_host_memory() {
    const auto& kv = shared_->options.kv;
    if (!kv.prefix_cache || kv.host_memory_bytes == 0) return;
    if (tiers_->host().take(kv.host_memory_bytes))
      kv_host_bytes_ = kv.host_memory_bytes;
    else
      log::warn("`kv.host_memory` must be at most " + format_bytes(tiers_->host().free()) +
                ", which the machine has, got " + format_bytes(kv.host_memory_bytes) +
                "; no KV blocks are kept in host memory");
  }

  batcher_limits limits() const {
    const auto& scheduler = shared_->options.scheduler;
    const std::int32_t step =
        scheduler.max_step_tokens > 0 ? scheduler.max_step_tokens : info_.max_step_tokens;
    const std::int32_t mixed = scheduler.mixed_prompt_tokens > 0 ? scheduler.mixed_prompt_tokens
                                                                 : info_.mixed_prompt_tokens;
    batcher_limits limits;
    limits.plan = {step, scheduler.max_running, info_.block_tokens,
                   shared_->options.kv.prefix_cache, mixed};
    limits.plan.max_logit_rows = info_.max_logit_rows;
    limits.plan.copies_blocks = info_.kv_block_bytes > 0;
    if (mixed == 0)
      limits.gap_target_s = std::chrono::duration<double>(scheduler.gap_target).count();
    limits.max_queued = scheduler.max_queued;
    limits.fair = scheduler.policy == "fair";
    limits.total_blocks = info_.n_blocks;
    limits.shareable_length = info_.shareable_length;
    return limits;
  }

  /// An actor ended unexpectedly, because an exception left one of its handlers.
  void on_down(const caf::down_msg& down) {
    const std::string why = text_of(self_->system(), down.reason);
    if (down.source == executor_)
      note([&](lifecycle& l) { l.executor_ended(why, steady_clock::now()); });
    else if (down.source == grammars_)
      note([](lifecycle& l) { l.compiler_ended(); });
    else if (down.source == offloader_)
      insist([&] {
        log::error("the offloader ended (" + why + "); another one takes its place");
        start_offloader();
        if (!offloading_) return;
        tell(self_, offloader_, open_tiers{offloading_}); // in case the previous offloader did not
        if (batcher_) tell(self_, batcher_, offloader_replaced{offloader_});
      });
    else if (down.source == kv_ || down.source == batcher_)
      note([&](lifecycle& l) { l.scheduler_ended(why, steady_clock::now()); });
  }

  supervisor_actor::pointer self_ = nullptr;
  engine_shared_ptr shared_;
  runner_factory make_runner_;
  models::offload::store_opener open_kv_store_; ///< null: a file
  runner_info info_;
  executor_actor executor_;
  kv_allocator_actor kv_;
  batcher_actor batcher_;
  /// The I/O threads, stores and memory budgets for streamed weights and for KV blocks in host
  /// memory and on disk. They outlive every executor and offloader, which use them.
  std::shared_ptr<models::offload::tier_resources> tiers_;
  std::int64_t kv_host_bytes_ = 0;
  std::shared_ptr<offloader_core> offloading_; ///< null: blocks stay on the device
  offloader_actor offloader_;
  std::string fingerprint_; ///< runner_info::fingerprint of the KV blocks
  grammar_compiler_actor grammars_;
  std::optional<lifecycle> lifecycle_;
  std::deque<lifecycle::order> orders_; ///< orders that were not carried out yet
};

supervisor_actor::behavior_type supervisor_behavior(
    counted_pointer<supervisor_actor, supervisor_state, actor_kind::supervisor> self,
    engine_shared_ptr shared, runner_factory make_runner,
    models::offload::store_opener open_kv_store) {
  self->attach_functor([shared](const caf::error& reason) {
    if (!reason) return;
    // No actor is left that could recover from the failure, so requests under way end.
    shared->set_state(engine_state::failed, "the supervisor ended; restart the server");
    for (const session_actor& session : shared->requests.all())
      tell_from_outside(
          session, abort_request{{errc::executor_failed, "the engine ended; retry later", ""}});
  });
  auto& state = state_of(self);
  state.init(self, std::move(shared), std::move(make_runner), std::move(open_kv_store),
             std::make_shared<models::offload::tier_resources>());
  return {
      [&state](const model_loaded& loaded) { state.on_loaded(loaded); },
      [&state](const load_failed& failed) { state.on_load_failed(failed); },
      [&state](const executor_broken& broken) { state.on_broken(broken); },
      [&state](watch_deadlines) { state.check_deadlines(); },
      [&state](check_deadlines) { state.check_deadlines(); },
      [&state](check_drained) { state.check_drained(); },
      [&state](const abort_all_requests& order) { state.abort_all(order.why); },
      [&state](wake_supervisor) { state.on_woken(); },
      [&state](stop_engine) { state.stop(); },
  };
}

} // namespace

supervisor_actor spawn_supervisor(caf::actor_system& system, engine_shared_ptr shared,
                                  runner_factory make_runner,
                                  models::offload::store_opener open_kv_store) {
  return system.spawn(supervisor_behavior, std::move(shared), std::move(make_runner),
                      std::move(open_kv_store));
}

} // namespace twill::actors
