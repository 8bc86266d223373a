#include "actors/kv/apply_change.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "config/base/assert.hpp"

namespace twill::actors {

namespace {

void spill(kv_tiers& tiers, std::int32_t block, block_identity identity, kv_grant& grant) {
  if (tiers.touch(identity.key)) return;
  host_block to = tiers.take_place();
  if (to) grant.spills.push_back({block, std::move(identity), std::move(to)});
}

void use_tiers(block_pool& pool, const kv_change& change, kv_tiers& tiers, kv_grant& grant) {
  for (auto& evicted : pool.take_evicted())
    spill(tiers, evicted.block, std::move(evicted.identity), grant);
  const bool keeps = tiers.keeps();
  for (const std::int32_t block : pool.take_inserted())
    if (keeps && pool.holds(block)) spill(tiers, block, pool.identity(block), grant);
  const auto now = steady_clock::now();
  for (std::size_t i = 0; i < change.queries.size(); ++i) {
    const prefix_query& query = change.queries[i];
    prefix_match& match = grant.matches[i];
    const std::size_t found = match.blocks.size() * static_cast<std::size_t>(pool.block_tokens());
    tiers.match(pool.name_of_end(match, query.scope), std::span(query.tokens).subspan(found), now,
                match.beyond);
  }
}

} // namespace

kv_grant apply_change(block_pool& pool, const kv_change& change, kv_tiers* tiers) {
  kv_grant grant;
  if (change.reset) pool.reset(change.n_blocks);
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
  // Inserts come after the grows, which were planned with the counts from before: an insert may
  // take a cached block into use.
  for (const prefix_insert& inserted : change.prefix_inserts)
    pool.insert(inserted);
  for (sequence_id id : change.drops)
    pool.drop(id);
  pool.look_up(change.queries, grant.matches);
  if (tiers != nullptr) use_tiers(pool, change, *tiers, grant);
  grant.free_blocks = pool.available();
  grant.used_blocks = pool.used();
  return grant;
}

} // namespace twill::actors
