// kv_allocator: the actor that owns the accounting of the KV blocks. Its logic is in
// actors/kv/apply_change.hpp and actors/kv/grant_blocks.hpp.
#pragma once

#include <cstdint>
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/kv/kv_event_log.hpp"
#include "actors/offloader/kv_tiers.hpp"

namespace twill::actors {

/// `tiers` null: blocks stay on the device. `log` null: no KV events are made.
kv_allocator_actor spawn_kv_allocator(caf::actor_system& system, std::int32_t n_blocks,
                                      std::int32_t block_tokens, std::shared_ptr<kv_tiers> tiers,
                                      std::shared_ptr<kv_event_log> log);

} // namespace twill::actors
