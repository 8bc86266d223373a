// plan_builder: turns a decision of the scheduler and the blocks for it into the step_plan that the
// executor gets.
//
// One thread at a time (the batcher's). It enters the blocks into the block tables of the
// sequences. It also stores orders to copy blocks until they go into a later plan: a copy within
// the device goes into the plan after the one that computes the block, and a spill (a copy of an
// evicted block to host memory) goes into the next plan, even if that plan computes nothing
// (build_spills()).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/batcher/sequence_groups.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/step_decision.hpp"

namespace twill::actors {

class plan_builder {
public:
  /// These blocks are copied off the device with the next plan.
  void add_spills(std::vector<block_spill> spills);
  bool has_spills() const { return !spills_.empty(); }

  /// Returns the plan that carries out `decision`. `blocks` are those for the decision's grows, and
  /// then those for its copies.
  step_plan build(const step_decision& decision, std::span<const std::int32_t> blocks,
                  sequence_groups& groups);
  /// A plan without rows, only with copies of blocks that are to be kept.
  step_plan build_spills();

  /// The device lost its KV, and with it what was to be copied.
  void forget_device();

private:
  void enter_blocks(const step_decision& decision, std::span<const std::int32_t> blocks,
                    sequence_groups& groups);
  void enter_copies(const step_decision& decision, std::span<const std::int32_t> blocks,
                    sequence_groups& groups);

  std::vector<block_spill> spills_; ///< spills that go into the next plan
  /// copies that go into the next plan; the last plan computes the blocks to be copied
  std::vector<block_copy> copies_;
};

} // namespace twill::actors
