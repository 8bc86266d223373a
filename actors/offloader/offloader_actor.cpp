#include "actors/offloader/offloader_actor.hpp"

#include <utility>
#include <vector>

#include "actors/detail/counted_actor.hpp"

namespace twill::actors {

namespace {

struct offloader_state {
  const char* name = "offloader";
  /// null: there are no KV tiers, and blocks stay on the device
  std::shared_ptr<offloader_core> kv;
};

offloader_actor::behavior_type
offloader_behavior(counted_pointer<offloader_actor, offloader_state, actor_kind::offloader> self,
                   std::shared_ptr<offloader_core> kv) {
  auto& state = state_of(self);
  state.kv = std::move(kv);
  return {
      [&state](const open_tiers& order) {
        state.kv = order.core;
        state.kv->open();
      },
      [&state](const fetch_blocks& order, const batcher_actor& batcher) {
        state.kv->fetch(order.keys, order.until,
                        [batcher, fetch_id = order.fetch_id](offloader_core::fetched answer) {
                          tell_from_outside(batcher,
                                            blocks_fetched{fetch_id, std::move(answer.blocks),
                                                           answer.seconds, false});
                        });
      },
      [&state](const prefetch_blocks& order) { state.kv->prefetch(order.keys); },
      [&state](const blocks_spilled& spilled) { state.kv->spill(spilled.blocks); },
  };
}

} // namespace

offloader_actor spawn_offloader(caf::actor_system& system, std::shared_ptr<offloader_core> kv) {
  return system.spawn<caf::detached>(offloader_behavior, std::move(kv));
}

} // namespace twill::actors
