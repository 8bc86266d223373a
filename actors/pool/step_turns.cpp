#include "actors/pool/step_turns.hpp"

#include <utility>

namespace twill::actors {

namespace {

class turn {
public:
  explicit turn(step_turns& turns) : turns_(turns) { turns_.enter(); }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  ~turn() { turns_.leave(); }

private:
  step_turns& turns_;
};

class turn_taking_runner final : public step_runner {
public:
  turn_taking_runner(std::unique_ptr<step_runner> inner, std::shared_ptr<step_turns> turns)
      : inner_(std::move(inner)), turns_(std::move(turns)) {}

  void use_tiers(std::shared_ptr<models::offload::tier_resources> resources) override {
    inner_->use_tiers(std::move(resources));
  }
  // A turn is the right to run a step, which one model has at a time. A load does not wait for a
  // turn, and neither do the warm-up steps with which a load on a GPU ends: a load with the turn
  // would delay the steps of all other models until it ends.
  result<runner_info> load() override {
    auto info = inner_->load();
    if (info.ok()) info.value().runs_ahead = false; // each turn is one step
    return info;
  }
  result<nothing> run(const executor_step& batch, step_samples& out) override {
    const turn mine(*turns_);
    return inner_->run(batch, out);
  }
  std::int64_t memory_used_bytes() const override { return inner_->memory_used_bytes(); }
  bool device_is_lost() override { return inner_->device_is_lost(); }
  std::shared_ptr<const stream_report> take_stream_report() override {
    return inner_->take_stream_report();
  }
  result<nothing> save_block(std::int32_t block, void* to) override {
    return inner_->save_block(block, to);
  }
  result<nothing> load_block(std::int32_t block, const void* from) override {
    return inner_->load_block(block, from);
  }

private:
  std::unique_ptr<step_runner> inner_;
  std::shared_ptr<step_turns> turns_;
};

} // namespace

runner_factory take_turns(runner_factory make, std::shared_ptr<step_turns> turns) {
  return [make = std::move(make), turns = std::move(turns)]() -> std::unique_ptr<step_runner> {
    return std::make_unique<turn_taking_runner>(make(), turns);
  };
}

} // namespace twill::actors
