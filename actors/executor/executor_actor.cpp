#include "actors/executor/executor_actor.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/detail/counted_actor.hpp"
#include "actors/executor/sequence_states.hpp"

namespace twill::actors {

namespace {

class executor_state {
public:
  const char* name = "executor";

  executor_state() = default;
  executor_state(const executor_state&) = delete;
  executor_state& operator=(const executor_state&) = delete;
  ~executor_state() {
    for (launched_step& step : under_way_)
      step.promise.deliver(caf::make_error(caf::sec::request_receiver_down));
    for (waiting_step& step : waiting_)
      step.promise.deliver(caf::make_error(caf::sec::request_receiver_down));
  }

  void init(executor_actor::pointer self, runner_factory make_runner, supervisor_actor supervisor,
            std::shared_ptr<models::offload::tier_resources> tiers) {
    self_ = self;
    make_runner_ = std::move(make_runner);
    tiers_ = std::move(tiers);
    supervisor_ = std::move(supervisor);
  }

  void load(const load_model& order) {
    abandon_steps();
    states_.clear();
    generation_ = order.generation;
    if (order.keep_weights && runner_)
      return tell(self_, supervisor_, model_loaded{generation_, info_});
    runner_.reset();
    auto info = guarded<runner_info>([this] {
      runner_ = make_runner_();
      runner_->use_tiers(tiers_);
      return runner_->load();
    });
    if (info.ok()) {
      info_ = std::move(info).value();
      tell(self_, supervisor_, model_loaded{generation_, info_});
    } else {
      const bool lost = drop_runner();
      tell(self_, supervisor_, load_failed{generation_, info.detail(), lost});
    }
  }

  /// Adds the step to those that wait. Each waiting step is begun by a message run_next, so that a
  /// message that calls skip() can be handled between two waiting steps.
  caf::result<step_result_ptr> take(const step_plan_ptr& plan) {
    waiting_.push_back({plan, self_->make_response_promise<step_result_ptr>()});
    if (waiting_.size() == 1) tell(self_, executor_actor{self_}, run_next{});
    return waiting_.back().promise;
  }

  /// The step stays in waiting_ until it is answered or under way, so that it is answered even if
  /// this function fails.
  void run_oldest() {
    const step_plan_ptr plan = waiting_.front().plan;
    if (!runner_ || plan->generation != generation_) // planned before a failure was known
      answer_waiting(not_run(*plan, restarted));
    else if (info_.runs_ahead)
      run_ahead(plan);
    else
      answer_waiting(compute(plan));
    if (!waiting_.empty()) tell(self_, executor_actor{self_}, run_next{});
  }

  listed_states list() const { return states_.list(); }

  /// Orders that steps skip these sequences. Does nothing after the runner has failed: no step of
  /// this generation will run, and no later plan would remove the ids from the list of sequences to
  /// skip.
  void skip(const skip_sequences& order) {
    if (runner_ && order.generation == generation_) states_.skip(order.ids);
  }

  /// Answers the steps up to the one that the device has finished. Some of them may be answered
  /// already, because the executor had to wait for their end before a later step.
  void computed(const step_computed& end) {
    if (end.generation != generation_) return;
    while (!under_way_.empty() && under_way_.front().plan->number <= end.number)
      finish_oldest();
  }

private:
  using answer_promise = caf::typed_response_promise<step_result_ptr>;
  static constexpr const char* restarted = "the executor was restarted";

  /// A step that was sent and has not begun.
  struct waiting_step {
    step_plan_ptr plan;
    answer_promise promise;
  };

  void answer_waiting(step_result_ptr answer) {
    waiting_.front().promise.deliver(std::move(answer));
    waiting_.pop_front();
  }

  step_result_ptr compute(const step_plan_ptr& plan) {
    auto answer = answer_to(*plan);
    const auto began = steady_clock::now();
    const auto done = guarded<nothing>([&]() -> result<nothing> {
      states_.prepare(*plan, batch_);
      if (auto copied = copy_blocks(*plan, *answer); !copied.ok()) return copied;
      if (!batch_.tokens.empty())
        if (auto ran = runner_->run(batch_, samples_); !ran.ok()) return ran;
      states_.finish(*plan, samples_, *answer);
      return nothing{};
    });
    answer->seconds = std::chrono::duration<double>(steady_clock::now() - began).count();
    if (!done.ok()) return step_result_ptr(broken(*plan, done.detail()));
    answer->memory_used_bytes = runner_->memory_used_bytes();
    answer->streamed = runner_->take_stream_report();
    return step_result_ptr(std::move(answer));
  }

  /// A launched step that is not answered yet.
  struct launched_step {
    step_plan_ptr plan;
    answer_promise promise;
    std::shared_ptr<step_result> answer;
    steady_clock::time_point began;
    /// whether step_runner::begin() was called for the step. It is not called for a step without
    /// tokens to compute, nor for one with scores or hidden states, which step_runner::run()
    /// computes at once
    bool begun = false;
  };

  static std::shared_ptr<step_result> answer_to(const step_plan& plan) {
    auto answer = std::make_shared<step_result>();
    answer->generation = plan.generation;
    answer->number = plan.number;
    return answer;
  }
  static std::shared_ptr<step_result> not_run(const step_plan& plan, const std::string& why) {
    auto answer = answer_to(plan);
    answer->ok = false;
    answer->detail = why;
    return answer;
  }

  /// Returns the answer to a step that failed. The device may be in any state, so everything on it
  /// is destroyed, on this thread.
  std::shared_ptr<step_result> broken(const step_plan& plan, const std::string& why) {
    states_.clear();
    const bool lost = drop_runner();
    tell(self_, supervisor_, executor_broken{generation_, why, lost});
    auto answer = not_run(plan, why);
    answer->device_is_lost = lost;
    return answer;
  }

  /// Destroys the runner after a failure. Returns whether the runner has lost its device, so that
  /// no other runner can use the device any more.
  bool drop_runner() {
    const bool lost = runner_ && runner_->device_is_lost();
    runner_.reset();
    return lost;
  }

  /// Launches the step, while another one computes if the plan allows it.
  void run_ahead(const step_plan_ptr& plan) {
    while (under_way_.size() >= sequence_states::most_under_way)
      finish_oldest();
    while (!under_way_.empty() && !states_.may_follow(*plan))
      finish_oldest();
    if (!runner_) // a step for which this function waited has failed
      return answer_waiting(not_run(*plan, restarted));
    under_way_.push_back({plan, waiting_.front().promise, answer_to(*plan), steady_clock::now()});
    waiting_.pop_front();
    launched_step& step = under_way_.back();
    const auto done = guarded<nothing>([&]() -> result<nothing> {
      states_.prepare(*plan, batch_);
      if (auto copied = copy_blocks(*plan, *step.answer); !copied.ok()) return copied;
      if (batch_.tokens.empty()) return nothing{};
      if (!batch_.scores.empty() || batch_.n_hidden > 0) return runner_->run(batch_, samples_);
      step.begun = true;
      return runner_->begin(batch_, [self = self_, end = step_computed{generation_, plan->number}] {
        tell_from_outside(executor_actor{self}, end);
      });
    });
    if (!done.ok())
      fail_steps(done.detail());
    else if (!step.begun && under_way_.size() == 1)
      finish_oldest();
  }

  /// Waits for the oldest step under way and answers it, and also the steps directly after it for
  /// which the device has nothing left to compute.
  void finish_oldest() {
    do {
      launched_step& step = under_way_.front();
      const auto done = guarded<nothing>([&]() -> result<nothing> {
        if (step.begun)
          if (auto ended = runner_->end(samples_); !ended.ok()) return ended;
        states_.finish(*step.plan, samples_, *step.answer);
        return nothing{};
      });
      if (!done.ok()) return fail_steps(done.detail());
      const auto now = steady_clock::now();
      step.answer->seconds =
          std::chrono::duration<double>(now - std::max(step.began, last_end_)).count();
      last_end_ = now;
      step.answer->memory_used_bytes = runner_->memory_used_bytes();
      step.answer->streamed = runner_->take_stream_report();
      step.promise.deliver(step_result_ptr(std::move(step.answer)));
      under_way_.pop_front();
    } while (!under_way_.empty() && !under_way_.front().begun);
  }

  /// Answers all steps under way with a failure. Called after one of them has failed.
  void fail_steps(const std::string& why) {
    auto lost = std::exchange(under_way_, {});
    for (launched_step& step : lost)
      step.promise.deliver(step_result_ptr(&step == &lost.front() ? broken(*step.plan, why)
                                                                  : not_run(*step.plan, why)));
  }

  /// Waits until the device has ended all steps under way and discards their results. The batcher
  /// gets the same answers as for steps that were never run. Called before the sequences' states
  /// are removed, because steps that the device is still computing may use them.
  void abandon_steps() {
    for (launched_step& step : std::exchange(under_way_, {})) {
      if (step.begun && runner_)
        if (auto ended = guarded<nothing>([this] { return runner_->end(samples_); }); !ended.ok())
          drop_runner(); // so that the model is loaded again
      step.promise.deliver(step_result_ptr(not_run(*step.plan, restarted)));
    }
  }

  /// Copies the KV blocks that the plan names. This happens between two steps, so that no step
  /// writes to a block being saved or reads a block being loaded.
  result<nothing> copy_blocks(const step_plan& plan, step_result& answer) {
    scratch_.resize(plan.copies.empty() ? scratch_.size()
                                        : static_cast<std::size_t>(info_.kv_block_bytes));
    for (const block_copy& c : plan.copies) {
      if (auto saved = runner_->save_block(c.from, scratch_.data()); !saved.ok()) return saved;
      if (auto loaded = runner_->load_block(c.to, scratch_.data()); !loaded.ok()) return loaded;
    }
    if (plan.spills.empty() && plan.loads.empty()) return nothing{};
    const auto began = steady_clock::now();
    for (const block_spill& s : plan.spills)
      if (auto saved = runner_->save_block(s.block, s.to.get()); !saved.ok()) return saved;
    for (const block_load& l : plan.loads)
      if (auto loaded = runner_->load_block(l.block, l.from.get()); !loaded.ok()) return loaded;
    answer.copy_seconds = std::chrono::duration<double>(steady_clock::now() - began).count();
    return nothing{};
  }

  /// The only try/catch around device work.
  template <class T, class F>
  static result<T> guarded(F&& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      return failure{errc::executor_failed, std::string(error.what())};
    } catch (...) {
      return failure{errc::executor_failed, std::string("an unknown exception")};
    }
  }

  executor_actor::pointer self_ = nullptr;
  runner_factory make_runner_;
  supervisor_actor supervisor_;
  std::shared_ptr<models::offload::tier_resources> tiers_; ///< shared with the offloader
  std::unique_ptr<step_runner> runner_;
  sequence_states states_;
  executor_step batch_;
  step_samples samples_;
  runner_info info_;                   ///< info of the last load
  std::vector<unsigned char> scratch_; ///< bytes of a block that is being copied
  std::uint64_t generation_ = 0;
  /// oldest first; unless empty, a run_next message is on its way
  std::deque<waiting_step> waiting_;
  std::deque<launched_step> under_way_; ///< oldest first; empty unless the runner runs ahead
  steady_clock::time_point last_end_{}; ///< when a launched step last ended
};

executor_actor::behavior_type
executor_behavior(counted_pointer<executor_actor, executor_state, actor_kind::executor> self,
                  runner_factory make_runner, supervisor_actor supervisor,
                  std::shared_ptr<models::offload::tier_resources> tiers) {
  state_of(self).init(self, std::move(make_runner), std::move(supervisor), std::move(tiers));
  return {
      [self](const load_model& order) { state_of(self).load(order); },
      [self](const step_plan_ptr& plan) { return state_of(self).take(plan); },
      [self](run_next) { state_of(self).run_oldest(); },
      [self](const skip_sequences& order) { state_of(self).skip(order); },
      [self](list_states) { return state_of(self).list(); },
      [self](step_computed end) { state_of(self).computed(end); },
  };
}

} // namespace

executor_actor spawn_executor(caf::actor_system& system, runner_factory make_runner,
                              supervisor_actor supervisor,
                              std::shared_ptr<models::offload::tier_resources> tiers) {
  return system.spawn<caf::detached>(executor_behavior, std::move(make_runner),
                                     std::move(supervisor), std::move(tiers));
}

} // namespace twill::actors
