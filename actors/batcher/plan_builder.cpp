#include "actors/batcher/plan_builder.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace twill::actors {

namespace {

/// Adds to the plan the copies to the device of KV blocks that were fetched for the sequence. The
/// targets are blocks of the sequence, beginning with block s.n_inserted: the first one that is not
/// in the allocator's prefix cache.
void add_loads(sequence_groups::sequence& s, step_plan& plan) {
  const std::int32_t n_loaded = s.fetched.after(s.n_inserted);
  for (std::int32_t i = s.n_inserted; i < s.n_inserted + n_loaded; ++i)
    plan.loads.push_back({s.blocks[static_cast<std::size_t>(i)],
                          s.fetched.blocks[static_cast<std::size_t>(i - s.fetched.first)]});
  s.fetched = {};
}

} // namespace

void plan_builder::add_spills(std::vector<block_spill> spills) {
  for (block_spill& s : spills)
    spills_.push_back(std::move(s));
}

step_plan plan_builder::build_spills() {
  step_plan plan;
  plan.spills = std::exchange(spills_, {});
  return plan;
}

step_plan plan_builder::build(const step_decision& decision, std::span<const std::int32_t> blocks,
                              sequence_groups& groups) {
  const auto for_grows = blocks.first(blocks.size() - decision.copies.size());
  const auto for_copies = blocks.last(decision.copies.size());
  step_plan plan;
  for (sequence_id id : decision.opened) {
    const auto& s = groups.at(id);
    plan.opens.push_back({id, s.spec, s.output, s.blocks});
  }
  enter_blocks(decision, for_grows, groups);
  plan.copies = std::exchange(copies_, {});
  enter_copies(decision, for_copies, groups);
  for (sequence_id id : decision.opened)
    add_loads(groups.at(id), plan);
  plan.spills = std::exchange(spills_, {});
  plan.grows = decision.grows;
  plan.blocks.assign(for_grows.begin(), for_grows.end());
  plan.rows = decision.rows;
  return plan;
}

/// Enters the granted and the forked blocks into the block tables.
void plan_builder::enter_blocks(const step_decision& decision, std::span<const std::int32_t> blocks,
                                sequence_groups& groups) {
  auto granted = blocks.begin();
  for (const lease_growth& g : decision.grows) {
    auto& table = groups.at(g.id).blocks;
    table.insert(table.end(), granted, granted + g.n_blocks);
    granted += g.n_blocks;
  }
  for (const lease_fork& f : decision.forks) {
    const auto& source = groups.at(f.from).blocks;
    groups.at(f.id).blocks.assign(source.begin(), source.begin() + f.n_blocks);
  }
}

/// Enters the blocks that get a copy, and keeps the copies for the next plan.
void plan_builder::enter_copies(const step_decision& decision, std::span<const std::int32_t> blocks,
                                sequence_groups& groups) {
  for (std::size_t i = 0; i < decision.copies.size(); ++i) {
    const lease_copy& c = decision.copies[i];
    const auto column = static_cast<std::size_t>(c.column);
    copies_.push_back({groups.at(c.from).blocks[column], blocks[i]});
    groups.at(c.id).blocks.push_back(blocks[i]);
  }
}

void plan_builder::forget_device() {
  spills_.clear();
  copies_.clear();
}

} // namespace twill::actors
