#include "actors/supervisor/supervisor_actor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "actors/batcher/batcher_actor.hpp"
#include "actors/executor/executor_actor.hpp"
#include "actors/kv/kv_allocator_actor.hpp"
#include "actors/session/output_plan.hpp"
#include "actors/structured/grammar_compiler_actor.hpp"
#include "actors/supervisor/restart_limit.hpp"
#include "config/base/log.hpp"

namespace twill::actors {

namespace {

constexpr std::chrono::milliseconds deadline_tick{50};
constexpr std::size_t most_restarts = 5;
constexpr std::chrono::seconds restart_window{60};

served_model_ptr make_served(const config::options& options, const runner_info& info) {
  auto served = std::make_shared<served_model>();
  served->files = info.model;
  served->id = options.model.name.empty() ? info.model->name : options.model.name;
  served->created_unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  served->max_context_tokens = info.max_context_tokens;
  served->kv_tokens = static_cast<std::int64_t>(info.n_blocks) * info.block_tokens;
  std::size_t longest = 1;
  for (std::int32_t id = 0; id < info.model->text->vocab_size(); ++id)
    longest = std::max(longest, info.model->text->token_bytes(id, true).size());
  served->max_prompt_bytes = longest * static_cast<std::size_t>(info.max_context_tokens);
  served->answers = find_answer_format(*info.model, options.model.tool_format);
  models::grammar::compile_limits limits;
  limits.timeout = options.structured.compile_timeout;
  limits.memory_bytes = options.structured.compile_memory_bytes;
  served->grammars =
      std::make_shared<grammar_service>(info.model, served->answers.markers(), std::move(limits));
  return served;
}

class supervisor_state {
public:
  const char* name = "supervisor";

  void init(supervisor_actor::pointer self, engine_shared_ptr shared, runner_factory make_runner) {
    self_ = self;
    shared_ = std::move(shared);
    make_runner_ = std::move(make_runner);
    self_->set_down_handler([this](caf::scheduled_actor*, caf::down_msg& down) { on_down(down); });
    start_executor();
  }

  void on_loaded(const runner_info& info) {
    info_ = info;
    shared_->stats.update(
        [&](engine_stats& s) { s.device_memory_used_bytes = info.memory_used_bytes; });
    if (!shared_->model()) {
      shared_->set_model(make_served(shared_->options, info));
      grammars_ = spawn_grammar_compiler(self_->system(), shared_->model()->grammars);
      shared_->set_grammars(grammars_);
      start_batcher();
      log::info("model " + shared_->model()->id + " is ready on " + info.device + " with " +
                std::to_string(info.n_blocks) + " KV blocks of " +
                std::to_string(info.block_tokens) + " tokens each");
    } else {
      log::info("the executor was restarted on " + info.device);
    }
    tell(self_, batcher_, executor_ready{executor_});
    shared_->set_state(engine_state::ready, "");
  }

  void on_load_failed(const std::string& detail) {
    if (shared_->model()) return on_broken("reloading failed: " + detail);
    log::error("the model could not be loaded: " + detail);
    shared_->set_state(engine_state::failed, detail);
  }

  /// A step failed. The batcher has learnt it from the step's result; this reloads the executor.
  void on_broken(const std::string& detail) {
    if (!may_restart("the executor failed: " + detail)) return;
    tell(self_, executor_, load_model{});
  }

  void check_deadlines() {
    for (const session_actor& session : shared_->requests.take_expired(steady_clock::now()))
      tell(self_, session, deadline_passed{});
    if (shared_->requests.keep_watching())
      tell_later(self_, self_, deadline_tick, actors::check_deadlines{});
  }

  void abort_all(const request_error& why) {
    for (const session_actor& session : shared_->requests.all())
      tell(self_, session, abort_request{why});
  }

  void check_drained() { shared_->requests.check_drained(); }

  void stop() {
    self_->set_down_handler([](caf::scheduled_actor*, caf::down_msg&) {});
    for (const session_actor& session : shared_->requests.all())
      self_->send_exit(session, caf::exit_reason::user_shutdown);
    if (batcher_) self_->send_exit(batcher_, caf::exit_reason::user_shutdown);
    if (const auto model = shared_->model()) model->grammars->stop();
    if (grammars_) self_->send_exit(grammars_, caf::exit_reason::user_shutdown);
    if (kv_) self_->send_exit(kv_, caf::exit_reason::user_shutdown);
    self_->send_exit(executor_, caf::exit_reason::user_shutdown);
    shared_->close();
    self_->quit();
  }

private:
  void start_executor() {
    executor_ = spawn_executor(self_->system(), make_runner_, supervisor_actor{self_});
    self_->monitor(executor_);
    tell(self_, executor_, load_model{});
  }

  void start_batcher() {
    const auto& scheduler = shared_->options.scheduler;
    batcher_limits limits;
    const std::int32_t step =
        scheduler.max_step_tokens > 0 ? scheduler.max_step_tokens : info_.max_step_tokens;
    const std::int32_t mixed = scheduler.mixed_prompt_tokens > 0 ? scheduler.mixed_prompt_tokens
                                                                 : info_.mixed_prompt_tokens;
    limits.plan = {step, scheduler.max_running, info_.block_tokens,
                   shared_->options.kv.prefix_cache, mixed};
    limits.plan.max_logit_rows = info_.max_logit_rows;
    limits.adapt_prefill_budget = mixed == 0;
    limits.max_queued = scheduler.max_queued;
    limits.fair = scheduler.policy == "fair";
    limits.total_blocks = info_.n_blocks;
    limits.shareable_length = info_.shareable_length;
    kv_ = spawn_kv_allocator(self_->system(), info_.n_blocks, info_.block_tokens);
    batcher_ = spawn_batcher(self_->system(), limits,
                             std::shared_ptr<stats_board>(shared_, &shared_->stats), kv_);
    self_->monitor(kv_);
    self_->monitor(batcher_);
    shared_->set_batcher(batcher_);
  }

  bool may_restart(const std::string& why) {
    log::error(why);
    if (shared_->state() == engine_state::failed) return false;
    if (!restarts_.allows(steady_clock::now())) {
      const std::string detail =
          "the executor was restarted " + std::to_string(most_restarts) +
          " times within a minute and is not restarted again; the last failure: " + why;
      shared_->set_state(engine_state::failed, detail);
      tell(self_, batcher_, give_up{{errc::executor_failed, detail, ""}});
      return false;
    }
    shared_->stats.update([](engine_stats& s) { s.executor_restarts += 1; });
    return true;
  }

  /// An actor ended that should run on, because an exception left one of its handlers.
  void on_down(const caf::down_msg& down) {
    const std::string why = text_of(self_->system(), down.reason);
    if (down.source == executor_) {
      if (may_restart("the executor ended: " + why)) start_executor();
      return;
    }
    if (down.source == kv_) {
      // The batcher waits for an answer that will not come. Its end, reported next, restarts both.
      self_->send_exit(batcher_, caf::exit_reason::kill);
      return;
    }
    if (down.source != batcher_) return;
    self_->send_exit(kv_, caf::exit_reason::kill);
    if (!may_restart("the batcher ended: " + why)) return;
    start_batcher(); // before abort_all, so that every session meets the new one or is aborted
    abort_all({errc::executor_failed,
               "the server lost this request when its scheduler was restarted; retry the request",
               ""});
    tell(self_, executor_, load_model{});
  }

  supervisor_actor::pointer self_ = nullptr;
  engine_shared_ptr shared_;
  runner_factory make_runner_;
  runner_info info_;
  executor_actor executor_;
  kv_allocator_actor kv_;
  batcher_actor batcher_;
  grammar_compiler_actor grammars_;
  restart_limit restarts_{most_restarts, restart_window};
};

supervisor_actor::behavior_type
supervisor_behavior(supervisor_actor::stateful_pointer<supervisor_state> self,
                    engine_shared_ptr shared, runner_factory make_runner) {
  auto& state = state_of(self);
  state.init(self, std::move(shared), std::move(make_runner));
  return {
      [&state](const model_loaded& loaded) { state.on_loaded(loaded.info); },
      [&state](const load_failed& failed) { state.on_load_failed(failed.detail); },
      [&state](const executor_broken& broken) { state.on_broken(broken.detail); },
      [&state](watch_deadlines) { state.check_deadlines(); },
      [&state](check_deadlines) { state.check_deadlines(); },
      [&state](check_drained) { state.check_drained(); },
      [&state](const abort_all_requests& order) { state.abort_all(order.why); },
      [&state](stop_engine) { state.stop(); },
  };
}

} // namespace

supervisor_actor spawn_supervisor(caf::actor_system& system, engine_shared_ptr shared,
                                  runner_factory make_runner) {
  return system.spawn(supervisor_behavior, std::move(shared), std::move(make_runner));
}

} // namespace twill::actors
