#include "actors/kv/apply_change.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "config/base/assert.hpp"
#include "config/base/id_ranges.hpp"

namespace twill::actors {

namespace {

/// Reserves host memory for KV blocks that leave the device and that neither host memory nor disk
/// has yet. `blocks` has the beginning of a prefix first. A block is of no use without the blocks
/// before it in its prefix, so those get memory first.
void spill(kv_tiers& tiers, std::vector<block_pool::named_block> blocks, kv_grant& grant) {
  std::unordered_set<block_key, block_key_hash> lost;
  for (auto& [block, identity] : blocks) {
    if (lost.contains(identity.parent)) {
      tiers.note_dropped();
      lost.insert(identity.key);
    } else if (host_block to = tiers.take_place()) {
      grant.spills.push_back({block, std::move(identity), std::move(to)});
    } else {
      lost.insert(identity.key);
    }
  }
}

using named_blocks = std::vector<block_pool::named_block>;

/// Returns the blocks that this change inserted and that are still in the prefix tree; an empty
/// list unless `wanted`.
named_blocks take_inserted(block_pool& pool, bool wanted) {
  named_blocks inserted;
  for (const std::int32_t block : pool.take_inserted())
    if (wanted && pool.holds(block)) inserted.push_back({block, pool.identity(block)});
  return inserted;
}

void report(kv_event_log& log, const named_blocks& evicted, const named_blocks& inserted) {
  for (const auto& one : evicted)
    log.removed(one.identity.key, kv_medium::device);
  for (const auto& one : inserted)
    log.stored(one.identity, kv_medium::device);
}

void use_tiers(const block_pool& pool, const kv_change& change, kv_tiers& tiers,
               steady_clock::time_point now, named_blocks evicted, named_blocks inserted,
               kv_grant& grant) {
  const auto is_known = [&](const auto& one) { return tiers.touch(one.identity.key); };
  std::erase_if(evicted, is_known);
  std::reverse(evicted.begin(), evicted.end()); // they were evicted children before parents
  spill(tiers, std::move(evicted), grant);
  if (tiers.keeps()) {
    std::erase_if(inserted, is_known);
    spill(tiers, std::move(inserted), grant);
  }
  for (std::size_t i = 0; i < change.queries.size(); ++i) {
    const prefix_query& query = change.queries[i];
    prefix_match& match = grant.matches[i];
    const std::size_t found = match.blocks.size() * static_cast<std::size_t>(pool.block_tokens());
    tiers.match(pool.name_of_end(match, query.scope), std::span(query.tokens).subspan(found), now,
                match.tier_keys);
  }
}

} // namespace

kv_grant apply_change(block_pool& pool, const kv_change& change, kv_tiers* tiers,
                      steady_clock::time_point now, kv_event_log* log) {
  kv_grant grant;
  if (change.reset) pool.reset(change.n_blocks);
  if (change.reset && log != nullptr) log->device_is_empty();
  for (const lease_reuse& r : change.reuses) {
    const bool reused = pool.reuse(r);
    TWILL_ASSERT(reused, "nothing changes between a match and its use");
  }
  for (const lease_growth& g : change.grows) {
    const bool granted = pool.grow(g.id, g.n_blocks, grant.blocks);
    TWILL_ASSERT(granted, "the scheduler asks for free blocks only");
  }
  for (const lease_fork& f : change.forks) {
    const bool forked = pool.fork(f.id, f.from, f.n_blocks);
    TWILL_ASSERT(forked, "a fork's source holds its prompt's blocks");
  }
  for (const lease_copy& c : change.copies) {
    const bool granted = pool.grow(c.id, 1, grant.copies);
    TWILL_ASSERT(granted, "the scheduler copies into free blocks only");
  }
  // Blocks are inserted into the prefix tree only after sequences got their new blocks
  // (pool.grow()). The batcher planned the new blocks with the number of blocks that were available
  // before the inserts, and an insert may turn a cached block into a used one.
  for (const prefix_insert& inserted : change.prefix_inserts)
    pool.insert(inserted);
  for (sequence_id id : change.drops)
    pool.drop(id);
  pool.look_up(change.queries, grant.matches);
  if (tiers != nullptr || log != nullptr) {
    auto evicted = pool.take_evicted();
    auto inserted = take_inserted(pool, log != nullptr || tiers->keeps());
    if (log != nullptr) report(*log, evicted, inserted);
    if (tiers != nullptr)
      use_tiers(pool, change, *tiers, now, std::move(evicted), std::move(inserted), grant);
  }
  grant.free_blocks = pool.available();
  grant.used_blocks = pool.used();
  return grant;
}

kv_leases describe(const block_pool& pool) {
  kv_leases all;
  std::vector<bool> held(static_cast<std::size_t>(pool.total()), false);
  pool.each_lease([&](sequence_id id, const std::vector<std::int32_t>& blocks) {
    all.leases.push_back({id, range_text(blocks), static_cast<std::int64_t>(blocks.size())});
  });
  std::sort(all.leases.begin(), all.leases.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  for (kv_leases::lease& one : all.leases)
    for (const std::int32_t block : pool.blocks(one.id)) {
      one.n_first += held[static_cast<std::size_t>(block)] ? 0 : 1;
      held[static_cast<std::size_t>(block)] = true;
    }
  id_ranges cached, pinned_by_child;
  for (std::int32_t block = 0; block < pool.total(); ++block) {
    if (pool.is_cached(block)) {
      cached.add(static_cast<std::uint64_t>(block));
    } else if (pool.references(block) > 0 && !held[static_cast<std::size_t>(block)]) {
      pinned_by_child.add(static_cast<std::uint64_t>(block));
      ++all.n_pinned_by_child;
    }
  }
  all.snapshot.cached = cached.text();
  all.snapshot.pinned_by_child = pinned_by_child.text();
  all.snapshot.total_blocks = pool.total();
  all.snapshot.used_blocks = pool.used();
  all.snapshot.free_blocks = pool.free();
  return all;
}

} // namespace twill::actors
