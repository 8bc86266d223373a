#include "actors/kv/apply_change.hpp"

#include "config/base/assert.hpp"

namespace twill::actors {

kv_grant apply_change(block_pool& pool, const kv_change& change) {
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
  grant.free_blocks = pool.available();
  grant.used_blocks = pool.used();
  return grant;
}

} // namespace twill::actors
