#include "actors/executor/executor_actor.hpp"

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "actors/detail/counted_actor.hpp"
#include "actors/detail/message_probe.hpp"
#include "actors/executor/sequence_states.hpp"

namespace twill::actors {

namespace {

class executor_state {
public:
  const char* name = "executor";

  void init(executor_actor::pointer self, runner_factory make_runner, supervisor_actor supervisor,
            std::shared_ptr<models::offload::tier_resources> tiers) {
    self_ = self;
    make_runner_ = std::move(make_runner);
    tiers_ = std::move(tiers);
    supervisor_ = std::move(supervisor);
  }

  void load(const load_model& order) {
    states_.clear();
    life_ = order.life;
    if (order.keep_weights && runner_) return tell(self_, supervisor_, model_loaded{life_, info_});
    runner_.reset();
    auto info = guarded<runner_info>([this] {
      runner_ = make_runner_();
      runner_->use_tiers(tiers_);
      return runner_->load();
    });
    if (info.ok()) {
      info_ = std::move(info).value();
      tell(self_, supervisor_, model_loaded{life_, info_});
    } else {
      runner_.reset();
      tell(self_, supervisor_, load_failed{life_, info.detail()});
    }
  }

  step_result_ptr run(const step_plan& plan) {
    auto answer = std::make_shared<step_result>();
    answer->epoch = plan.epoch;
    answer->number = plan.number;
    if (!runner_ || plan.epoch != life_) { // made before a failure was known
      answer->ok = false;
      answer->detail = "the executor was restarted";
      return answer;
    }
    const auto began = steady_clock::now();
    const auto done = guarded<nothing>([&]() -> result<nothing> {
      states_.prepare(plan, batch_);
      if (auto copied = copy_blocks(plan, *answer); !copied.ok()) return copied;
      if (!batch_.tokens.empty())
        if (auto ran = runner_->run(batch_, samples_); !ran.ok()) return ran;
      states_.finish(plan, samples_, *answer);
      return nothing{};
    });
    answer->seconds = std::chrono::duration<double>(steady_clock::now() - began).count();
    if (done.ok()) {
      answer->memory_used_bytes = runner_->memory_used_bytes();
      answer->streamed = runner_->take_stream_report();
      return answer;
    }
    // The device may be in any state, so everything on it is destroyed, on this thread.
    states_.clear();
    runner_.reset();
    answer->ok = false;
    answer->detail = done.detail();
    answer->drawn.clear();
    tell(self_, supervisor_, executor_broken{life_, done.detail()});
    return answer;
  }

private:
  /// Between steps, so that no step is writing to what is saved, or reading what is loaded.
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

  /// The one try/catch around device work.
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
  std::shared_ptr<models::offload::tier_resources> tiers_; ///< the offloader's
  std::unique_ptr<step_runner> runner_;
  sequence_states states_;
  executor_step batch_;
  step_samples samples_;
  runner_info info_;                   ///< of the last load
  std::vector<unsigned char> scratch_; ///< of a block that is copied
  std::uint64_t life_ = 0;
};

executor_actor::behavior_type
executor_behavior(counted_pointer<executor_actor, executor_state, actor_kind::executor> self,
                  runner_factory make_runner, supervisor_actor supervisor,
                  std::shared_ptr<models::offload::tier_resources> tiers) {
  state_of(self).init(self, std::move(make_runner), std::move(supervisor), std::move(tiers));
  return {
      [self](const load_model& order) {
        probe("executor", "load_model");
        state_of(self).load(order);
      },
      [self](const step_plan_ptr& plan) {
        probe("executor", "step_plan");
        return state_of(self).run(*plan);
      },
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
