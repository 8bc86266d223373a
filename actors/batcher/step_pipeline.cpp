#include "actors/batcher/step_pipeline.hpp"

#include <utility>

#include "config/base/assert.hpp"

namespace twill::actors {

void step_pipeline::executor_lost() {
  outstanding_.clear();
  closes_.clear();
  has_executor_ = false;
  generation_ = no_generation;
}

step_plan_ptr step_pipeline::send(step_plan plan) {
  TWILL_ASSERT(has_room(), "a plan needs an executor and room in the pipeline");
  plan.generation = generation_;
  plan.number = ++number_;
  plan.closes = std::exchange(closes_, {});
  outstanding_.push_back(std::make_shared<const step_plan>(std::move(plan)));
  return outstanding_.back();
}

step_plan_ptr step_pipeline::take(const step_result& result) {
  if (result.generation != generation_ || outstanding_.empty()) return nullptr;
  TWILL_ASSERT(outstanding_.front()->number == result.number, "steps come back in order");
  step_plan_ptr plan = outstanding_.front();
  outstanding_.erase(outstanding_.begin());
  return plan;
}

step_plan_ptr step_pipeline::oldest() const {
  return outstanding_.empty() ? nullptr : outstanding_.front();
}

} // namespace twill::actors
