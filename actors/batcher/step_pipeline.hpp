// step_pipeline: the steps that were sent to the executor and have no result yet. There are two at
// most: one is prepared while the one before it runs.
//
// One thread at a time (the batcher's). A generation is one load of the executor, as counted by the
// supervisor. Plans and results of an earlier generation are ignored.
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
  /// Whether there is an executor and another plan may be sent.
  bool has_room() const { return has_executor_ && outstanding_.size() < most_outstanding; }
  std::uint64_t generation() const { return generation_; }

  void executor_ready(std::uint64_t generation) {
    has_executor_ = true;
    generation_ = generation;
  }
  /// Drops every outstanding step. Until the next executor is ready there is no generation.
  void executor_lost();

  /// The executor removes the state of this sequence before it runs the next plan.
  void close(sequence_id id) { closes_.push_back(id); }
  /// Fills in the plan's generation, number and closes. The plan is outstanding from now on.
  step_plan_ptr send(step_plan plan);
  /// Returns the plan that this result answers; it is no longer outstanding. Null if the result is
  /// of an earlier generation, that is, of a step before the model's last load.
  step_plan_ptr take(const step_result& result);
  /// Returns the plan whose result comes next; null if none is outstanding.
  step_plan_ptr oldest() const;
  std::size_t n_outstanding() const { return outstanding_.size(); }
  /// Sequences whose states the executor removes with the next plan.
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
