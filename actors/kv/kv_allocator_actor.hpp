// kv_allocator: the actor that owns the accounting of the KV blocks. Its logic is in
// actors/kv/apply_change.hpp.
#pragma once

#include <cstdint>

#include "actors/interfaces.hpp"

namespace twill::actors {

kv_allocator_actor spawn_kv_allocator(caf::actor_system& system, std::int32_t n_blocks,
                                      std::int32_t block_tokens);

} // namespace twill::actors
