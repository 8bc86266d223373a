#include "actors/offloader/offloader_actor.hpp"

#include <utility>
#include <vector>

#include "actors/detail/counted_actor.hpp"
#include "actors/detail/message_probe.hpp"

namespace twill::actors {

namespace {

struct offloader_state {
  const char* name = "offloader";
  std::shared_ptr<offloader_core> core;
};

offloader_actor::behavior_type
offloader_behavior(counted_pointer<offloader_actor, offloader_state, actor_kind::offloader> self,
                   std::shared_ptr<offloader_core> core, bool open) {
  state_of(self).core = std::move(core);
  if (open) tell(self, offloader_actor{self}, open_tiers{});
  return {
      [self](open_tiers) { state_of(self).core->open(); },
      [self](const fetch_blocks& order, const batcher_actor& batcher) {
        probe("offloader", "fetch_blocks");
        state_of(self).core->fetch(
            order.keys, order.until,
            [batcher, ticket = order.ticket](offloader_core::fetched answer) {
              tell_from_outside(
                  batcher, blocks_fetched{ticket, std::move(answer.blocks), answer.seconds, false});
            });
      },
      [self](const prefetch_blocks& order) {
        probe("offloader", "prefetch_blocks");
        state_of(self).core->prefetch(order.keys);
      },
      [self](const blocks_spilled& spilled) {
        probe("offloader", "blocks_spilled");
        state_of(self).core->spill(spilled.blocks);
      },
  };
}

} // namespace

offloader_actor spawn_offloader(caf::actor_system& system, std::shared_ptr<offloader_core> core,
                                bool open) {
  return system.spawn<caf::detached>(offloader_behavior, std::move(core), open);
}

} // namespace twill::actors
