#include "actors/batcher/batcher_actor.hpp"

#include <memory>
#include <unordered_map>
#include <utility>

namespace twill::actors {

namespace {

class batcher_state : public batcher_core::session_sink {
public:
  const char* name = "batcher";
  std::unique_ptr<batcher_core> core;

  void init(batcher_actor::pointer self, const batcher_limits& limits,
            std::shared_ptr<stats_board> stats, kv_allocator_actor kv) {
    self_ = self;
    stats_ = std::move(stats);
    kv_ = std::move(kv);
    core = std::make_unique<batcher_core>(limits, *stats_, *this);
    core->publish();
  }

  void submit(const submit_prompt& prompt, const session_actor& session) {
    sessions_.emplace(prompt.request, session);
    core->submit(prompt);
    pump();
  }
  void use(const executor_actor& executor) {
    executor_ = executor;
    core->executor_ready();
    pump();
  }

  /// Drops what has been released, then plans and sends steps until two are outstanding.
  /// While the allocator answers, other messages wait: planning sees one consistent state.
  void pump() {
    if (drop_released()) return;
    if (!core->wants_plan()) return core->publish();
    if (auto queries = core->look_up())
      ask_allocator(std::move(*queries), [this](const kv_grant&) { plan(); });
    else
      plan();
  }

private:
  void plan() {
    if (auto change = core->plan()) {
      if (change->grows.empty() && change->forks.empty())
        send_plan({});
      else
        ask_allocator(std::move(*change), [this](const kv_grant& grant) { send_plan(grant); });
      return;
    }
    if (drop_released()) return; // a preemption freed blocks at once
    core->publish();
  }

  /// True when there was something to drop: pump() goes on when that is done.
  bool drop_released() {
    auto drops = core->take_drops();
    if (drops) ask_allocator(std::move(*drops), [this](const kv_grant&) { pump(); });
    return drops.has_value();
  }

  template <class F>
  void ask_allocator(kv_change change, F then) {
    ask(self_, kv_, std::move(change)).await([this, then](kv_grant& grant) {
      core->note_blocks(grant);
      then(grant);
    });
  }

  void send_plan(const kv_grant& grant) {
    const step_plan_ptr plan = core->make_plan(grant, steady_clock::now());
    ask(self_, executor_, plan)
        .then([this](const step_result_ptr& result) { on_result(*result); },
              [this, epoch = plan->epoch](const caf::error&) {
                core->step_failed(epoch, "the executor is gone");
                pump();
              });
    pump();
  }

  void on_result(const step_result& result) {
    if (result.ok)
      core->step_done(result, steady_clock::now());
    else
      core->step_failed(result.epoch, result.detail);
    pump();
  }

  // batcher_core::session_sink
  template <class T>
  void tell_session(request_id request, T&& message) {
    if (auto i = sessions_.find(request); i != sessions_.end())
      tell(self_, i->second, std::forward<T>(message));
  }
  void queued(request_id request) override { tell_session(request, prompt_queued{}); }
  void token(request_id request, token_ready token) override {
    tell_session(request, std::move(token));
  }
  void failed(request_id request, const request_error& why) override {
    tell_session(request, prompt_failed{why});
  }
  void forgotten(request_id request) override { sessions_.erase(request); }

  batcher_actor::pointer self_ = nullptr;
  std::shared_ptr<stats_board> stats_;
  kv_allocator_actor kv_;
  executor_actor executor_;
  std::unordered_map<request_id, session_actor> sessions_;
};

batcher_actor::behavior_type batcher_behavior(batcher_actor::stateful_pointer<batcher_state> self,
                                              batcher_limits limits,
                                              std::shared_ptr<stats_board> stats,
                                              kv_allocator_actor kv) {
  auto& state = state_of(self);
  state.init(self, limits, std::move(stats), std::move(kv));
  auto then_pump = [&state](auto&& change) {
    change(*state.core);
    state.pump();
  };
  return {
      [&state](const submit_prompt& prompt, const session_actor& session) {
        state.submit(prompt, session);
      },
      [then_pump](const finish_choice& order) {
        then_pump([&](batcher_core& c) { c.finish_choice(order.request, order.choice); });
      },
      [then_pump](release_request order) {
        then_pump([&](batcher_core& c) { c.release(order.request); });
      },
      [then_pump](pause_request order) {
        then_pump([&](batcher_core& c) { c.pause(order.request); });
      },
      [then_pump](resume_request order) {
        then_pump([&](batcher_core& c) { c.resume(order.request); });
      },
      [&state](const executor_ready& ready) { state.use(ready.executor); },
      [then_pump](const give_up& order) {
        then_pump([&](batcher_core& c) { c.give_up(order.why); });
      },
  };
}

} // namespace

batcher_actor spawn_batcher(caf::actor_system& system, const batcher_limits& limits,
                            std::shared_ptr<stats_board> stats, kv_allocator_actor kv) {
  return system.spawn(batcher_behavior, limits, std::move(stats), std::move(kv));
}

} // namespace twill::actors
