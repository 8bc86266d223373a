#include "actors/kv/kv_allocator_actor.hpp"

#include <memory>
#include <utility>

#include "actors/detail/counted_actor.hpp"
#include "actors/kv/apply_change.hpp"
#include "actors/kv/grant_blocks.hpp"

namespace twill::actors {

namespace {

struct kv_allocator_state {
  const char* name = "kv_allocator";
  std::unique_ptr<block_pool> pool;
  std::shared_ptr<kv_tiers> tiers;   ///< null: blocks stay on the device
  std::shared_ptr<kv_event_log> log; ///< null: no KV events are made
};

kv_allocator_actor::behavior_type kv_allocator_behavior(
    counted_pointer<kv_allocator_actor, kv_allocator_state, actor_kind::kv_allocator> self,
    std::int32_t n_blocks, std::int32_t block_tokens, std::shared_ptr<kv_tiers> tiers,
    std::shared_ptr<kv_event_log> log) {
  state_of(self).pool = std::make_unique<block_pool>(n_blocks, block_tokens);
  if (tiers || log) state_of(self).pool->name_blocks(tiers ? tiers->key() : log->key());
  state_of(self).tiers = std::move(tiers);
  state_of(self).log = std::move(log);
  return {
      [self](const kv_change& change) {
        apply_change(*state_of(self).pool, change, state_of(self).log.get());
      },
      [self](const block_request& request) {
        return grant_blocks(*state_of(self).pool, request, state_of(self).tiers.get(),
                            steady_clock::now(), state_of(self).log.get());
      },
      [self](describe_leases) { return describe(*state_of(self).pool); },
  };
}

} // namespace

kv_allocator_actor spawn_kv_allocator(caf::actor_system& system, std::int32_t n_blocks,
                                      std::int32_t block_tokens, std::shared_ptr<kv_tiers> tiers,
                                      std::shared_ptr<kv_event_log> log) {
  return system.spawn<caf::detached>(kv_allocator_behavior, n_blocks, block_tokens,
                                     std::move(tiers), std::move(log));
}

} // namespace twill::actors
