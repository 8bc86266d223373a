#include "tools/twill-bench/plan/actor_load.hpp"

#include <cstddef>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "actors/batcher/batcher_actor.hpp"
#include "actors/batcher/batcher_observer.hpp"
#include "actors/detail/counted_actor.hpp"
#include "actors/detail/mailbox_depths.hpp"
#include "actors/detail/stats_board.hpp"
#include "actors/interfaces.hpp"
#include "actors/kv/kv_allocator_actor.hpp"
#include "tools/twill-bench/plan/allocator_waits.hpp"

namespace twill::bench {
namespace {

using namespace actors; // NOLINT(google-build-using-namespace)

/// How a run ends: with the times, or with an error. The first end counts. Any thread.
class run_end {
public:
  void finish(actor_load_times times) {
    std::call_once(once_, [&] { promise_.set_value(std::move(times)); });
  }
  void fail(const std::string& why) {
    std::call_once(
        once_, [&] { promise_.set_exception(std::make_exception_ptr(std::runtime_error(why))); });
  }
  actor_load_times wait() { return promise_.get_future().get(); }

private:
  std::once_flag once_;
  std::promise<actor_load_times> promise_;
};

/// The executor that computes nothing.
class load_executor_state {
public:
  const char* name = "load_executor";

  void init(executor_actor::pointer self, const actor_load_settings& settings,
            allocator_waits& waits, std::shared_ptr<const mailbox_depths> depths,
            std::shared_ptr<run_end> end) {
    self_ = self;
    settings_ = settings;
    waits_ = &waits;
    depths_ = std::move(depths);
    end_ = std::move(end);
  }

  caf::result<step_result_ptr> take(const step_plan_ptr& plan) {
    note_arrival(steady_clock::now());
    steps_.push_back({std::make_shared<const step_result>(results_.result_of(*plan)),
                      self_->make_response_promise<step_result_ptr>()});
    if (steps_.size() == 1) begin_oldest();
    return steps_.back().promise;
  }

  /// Answers the oldest step, whose time has passed. If the sessions are far behind, the step takes
  /// longer: else they would replace ended requests ever later, and fewer and fewer would wait.
  void answer_oldest() {
    const auto unhandled = depths_->depth(static_cast<std::size_t>(actor_kind::session));
    if (unhandled > 2 * settings_.load.running + 100)
      return tell_later(self_, executor_actor{self_}, std::chrono::milliseconds(1), run_next{});
    step ended = std::move(steps_.front());
    steps_.pop_front();
    answered_at_.push_back(steady_clock::now());
    ended.promise.deliver(std::move(ended.result));
    if (!steps_.empty()) begin_oldest();
  }

private:
  struct step {
    step_result_ptr result;
    caf::typed_response_promise<step_result_ptr> promise;
  };

  void begin_oldest() {
    if (settings_.step.count() == 0)
      tell(self_, executor_actor{self_}, run_next{});
    else
      tell_later(self_, executor_actor{self_}, settings_.step, run_next{});
  }

  void note_arrival(steady_clock::time_point now) {
    const auto before = std::exchange(last_arrival_, now);
    if (answered_at_.empty()) return; // one of the first two plans, which follow no result
    const auto answered = answered_at_.front();
    answered_at_.pop_front();
    const double wait = waits_->take(answered, now);
    const std::int32_t i = n_arrived_++ - settings_.warm_steps;
    if (i < 0 || i >= settings_.steps) return;
    times_.to_plan.push_back(std::chrono::duration<double>(now - answered).count());
    times_.waits.push_back(wait);
    times_.between.push_back(std::chrono::duration<double>(now - before).count());
    if (i + 1 == settings_.steps) end_->finish(std::move(times_));
  }

  executor_actor::pointer self_ = nullptr;
  actor_load_settings settings_;
  allocator_waits* waits_ = nullptr;
  std::shared_ptr<const mailbox_depths> depths_;
  std::shared_ptr<run_end> end_;
  result_maker results_;
  std::deque<step> steps_;                           ///< without an answer so far; the oldest runs
  std::deque<steady_clock::time_point> answered_at_; ///< results that no plan has followed so far
  steady_clock::time_point last_arrival_;
  std::int32_t n_arrived_ = 0; ///< plans that followed a result
  actor_load_times times_;
};

executor_actor::behavior_type load_executor_behavior(
    counted_pointer<executor_actor, load_executor_state, actor_kind::executor> self,
    const actor_load_settings& settings, allocator_waits* waits,
    std::shared_ptr<const mailbox_depths> depths, std::shared_ptr<run_end> end) {
  auto& state = state_of(self);
  state.init(self, settings, *waits, std::move(depths), std::move(end));
  return {
      [](const load_model&) {},
      [&state](const step_plan_ptr& plan) { return state.take(plan); },
      [](const skip_sequences&) {},
      [](list_states) { return listed_states{}; },
      [&state](run_next) { state.answer_oldest(); },
      [](step_computed) {},
  };
}

/// All sessions in one actor.
class load_sessions_state {
public:
  const char* name = "load_sessions";

  void init(session_actor::pointer self, const load_settings& settings, batcher_actor batcher,
            std::shared_ptr<run_end> end) {
    self_ = self;
    batcher_ = std::move(batcher);
    end_ = std::move(end);
    requests_.emplace(settings);
    for (std::int32_t i = 0; i < settings.queued + settings.running; ++i)
      submit();
  }
  void token(const token_ready& token) {
    if (token.stopped || token.length) submit();
  }
  void fail(const request_error& why) { end_->fail("the batcher ended a request: " + why.message); }

private:
  void submit() { tell(self_, batcher_, requests_->next(), session_actor{self_}); }

  session_actor::pointer self_ = nullptr;
  batcher_actor batcher_;
  std::shared_ptr<run_end> end_;
  std::optional<request_maker> requests_;
};

session_actor::behavior_type load_sessions_behavior(
    counted_pointer<session_actor, load_sessions_state, actor_kind::session> self,
    const load_settings& settings, batcher_actor batcher, std::shared_ptr<run_end> end) {
  auto& state = state_of(self);
  state.init(self, settings, std::move(batcher), std::move(end));
  return {
      [](const start_request&) {},
      [](const encoded_prompt_ptr&) {},
      [](prompt_queued) {},
      [](const grammar_ready&) {},
      [](grammar_overdue) {},
      [](const prompt_scored&) {},
      [](const prompt_pooled&) {},
      [&state](const token_ready& token) { state.token(token); },
      [&state](const prompt_failed& failed) { state.fail(failed.why); },
      [](cancel_request) {},
      [](pause_request) {},
      [](resume_request) {},
      [](deadline_passed) {},
      [](waited_too_long) {},
      [](const abort_request&) {},
      [](const scheduler_replaced&) {},
  };
}

} // namespace

actor_load_times run_actor_load(const actor_load_settings& settings) {
  allocator_waits waits;
  engine_config config;
  caf::actor_system system(config);
  const auto end = std::make_shared<run_end>();
  const auto stats = std::make_shared<stats_board>();
  const batcher_limits limits = limits_for(settings.load);
  const auto allocator =
      spawn_kv_allocator(system, blocks_for(settings.load), load_block_tokens, nullptr, nullptr);
  const std::shared_ptr<batcher_observer> observer(std::shared_ptr<void>{},
                                                   &batcher_observer::none());
  const auto batcher = spawn_batcher(system, limits, stats, waits.in_front_of(system, allocator),
                                     offloader_actor{}, nullptr, observer);
  const std::shared_ptr<const mailbox_depths> depths = config.depths;
  const auto executor =
      system.spawn<caf::detached>(load_executor_behavior, settings, &waits, depths, end);
  const auto sessions = system.spawn(load_sessions_behavior, settings.load, batcher, end);
  tell_from_outside(batcher, executor_ready{executor, 1, limits});
  const auto stop = [&] {
    caf::anon_send_exit(batcher, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(sessions, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(executor, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(allocator, caf::exit_reason::user_shutdown);
  };
  try {
    actor_load_times times = end->wait();
    const engine_stats now = stats->read();
    times.running = static_cast<std::int32_t>(now.requests_running);
    times.waiting = static_cast<std::int32_t>(now.requests_waiting);
    stop();
    return times;
  } catch (...) {
    stop();
    throw;
  }
}

} // namespace twill::bench
