// A step_runner some of whose steps fail: before they compute, after it, or by an exception. Steps
// may also take long.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "actors/executor/step_runner.hpp"

namespace twill::test {

/// Is kept over restarts. A test sets these members only while no engine runs.
struct troubles {
  std::set<std::int64_t> failing; ///< numbers of steps
  /// A delay of each step, so that fetching a block is faster than computing its tokens.
  std::chrono::microseconds delay{0};
  std::atomic<std::int64_t> steps{0};
};

class troubled_runner final : public actors::step_runner {
public:
  troubled_runner(std::unique_ptr<actors::step_runner> inner, std::shared_ptr<troubles> plan)
      : inner_(std::move(inner)), plan_(std::move(plan)) {}

  void use_tiers(std::shared_ptr<models::offload::tier_resources> tiers) override {
    inner_->use_tiers(std::move(tiers));
  }
  actors::result<actors::runner_info> load() override { return inner_->load(); }
  actors::result<nothing> run(const actors::executor_step& batch,
                              actors::step_samples& out) override {
    const std::int64_t step = plan_->steps.fetch_add(1);
    const bool fails = plan_->failing.contains(step);
    if (fails && step % 3 == 0) return failed();
    if (fails && step % 3 == 1) throw std::runtime_error("planned exception");
    std::this_thread::sleep_for(plan_->delay);
    auto ran = inner_->run(batch, out);
    return fails ? failed() : ran;
  }
  actors::result<nothing> begin(const actors::executor_step& batch,
                                std::function<void()> done) override {
    const std::int64_t step = plan_->steps.fetch_add(1);
    if (!plan_->failing.contains(step)) return inner_->begin(batch, std::move(done));
    if (step % 2 == 0) return failed();
    throw std::runtime_error("planned exception");
  }
  actors::result<nothing> end(actors::step_samples& out) override { return inner_->end(out); }
  std::int64_t memory_used_bytes() const override { return inner_->memory_used_bytes(); }
  actors::result<nothing> save_block(std::int32_t block, void* to) override {
    return inner_->save_block(block, to);
  }
  actors::result<nothing> load_block(std::int32_t block, const void* from) override {
    return inner_->load_block(block, from);
  }

private:
  static actors::result<nothing> failed() {
    return failure{actors::errc::executor_failed, std::string("planned failure")};
  }

  std::unique_ptr<actors::step_runner> inner_;
  std::shared_ptr<troubles> plan_;
};

} // namespace twill::test
