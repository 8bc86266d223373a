#include "actors/kv/kv_allocator_actor.hpp"

#include "actors/kv/block_pool.hpp"
#include "config/base/assert.hpp"

namespace twill::actors {

namespace {

struct kv_allocator_state {
  std::unique_ptr<block_pool> pool;
  const char* name = "kv_allocator";

  kv_grant apply(const kv_change& change) {
    kv_grant grant;
    if (change.reset) pool->reset();
    for (const lease_reuse& r : change.reuses) {
      const bool reused = pool->reuse(r);
      TWILL_ASSERT(reused, "nothing changes between a match and its use");
    }
    for (const lease_growth& g : change.grows) {
      const bool granted = pool->grow(g.id, g.n_blocks, grant.blocks);
      TWILL_ASSERT(granted, "the scheduler asks for free blocks only");
    }
    for (const lease_fork& f : change.forks) {
      const bool forked = pool->fork(f.id, f.from, f.n_blocks);
      TWILL_ASSERT(forked, "a fork's source holds its prompt's blocks");
    }
    // After the grows, which were planned with the counts from before: an entry may take a cached
    // block into use.
    for (const prefix_insert& e : change.prefix_inserts)
      pool->insert(e);
    for (sequence_id id : change.drops)
      pool->drop(id);
    pool->look_up(change.queries, grant.matches);
    grant.free_blocks = pool->available();
    grant.used_blocks = pool->used();
    return grant;
  }
};

kv_allocator_actor::behavior_type
kv_allocator_behavior(kv_allocator_actor::stateful_pointer<kv_allocator_state> self,
                      std::int32_t n_blocks, std::int32_t block_tokens) {
  state_of(self).pool = std::make_unique<block_pool>(n_blocks, block_tokens);
  return {[self](const kv_change& change) { return state_of(self).apply(change); }};
}

} // namespace

kv_allocator_actor spawn_kv_allocator(caf::actor_system& system, std::int32_t n_blocks,
                                      std::int32_t block_tokens) {
  return system.spawn(kv_allocator_behavior, n_blocks, block_tokens);
}

} // namespace twill::actors
