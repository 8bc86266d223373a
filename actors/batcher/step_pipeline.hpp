// step_pipeline: the steps that were sent to the executor and have not come back, two at most, so
// that one is prepared while the one before it runs.
//
// One thread at a time (the batcher's). An epoch is one life of the executor, as the supervisor
// counts them: plans and results of another epoch mean nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/messages.hpp"

namespace twill::actors {

class step_pipeline {
public:
  static constexpr std::size_t most_outstanding = 2;

  bool has_executor() const { return has_executor_; }
  /// There is an executor, and room for another plan.
  bool has_room() const { return has_executor_ && outstanding_.size() < most_outstanding; }
  std::uint64_t generation() const { return generation_; }

  void executor_ready(std::uint64_t generation) {
    has_executor_ = true;
    generation_ = generation;
  }
  /// Forgets every outstanding step; until the next executor is ready there is no epoch.
  void executor_lost();

  /// The executor forgets this sequence before it runs the next plan.
  void close(sequence_id id) { closes_.push_back(id); }
  /// Completes a plan with epoch, number and closes; it is outstanding from now on.
  step_plan_ptr send(step_plan plan);
  /// The plan that this result answers, which is outstanding no longer; null when it is of an
  /// earlier epoch.
  step_plan_ptr take(const step_result& result);
  /// The plan whose result comes next; null when none is outstanding.
  step_plan_ptr oldest() const;
  std::size_t n_outstanding() const { return outstanding_.size(); }
  /// Sequences that the executor forgets with the next plan.
  const std::vector<sequence_id>& closes() const { return closes_; }

private:
  bool has_executor_ = false;
  static constexpr std::uint64_t no_generation = ~std::uint64_t{0};
  std::uint64_t generation_ = no_generation;
  std::uint64_t number_ = 0;
  std::vector<step_plan_ptr> outstanding_; ///< oldest first
  std::vector<sequence_id> closes_;
};

} // namespace twill::actors
