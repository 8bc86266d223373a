// grow: gives new blocks to a lease (the list of blocks of one sequence), for tests that are not
// about granting blocks ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/kv/block_pool.hpp"

namespace twill::test {

/// Appends n new blocks to the lease of sequence `id` and to `out`. Appends all n blocks, or none
/// and returns false. Blocks that an earlier look_up() matched may be evicted for them.
inline bool grow(actors::block_pool& pool, actors::sequence_id id, std::int32_t n,
                 std::vector<std::int32_t>& out) {
  if (n > pool.available()) return false;
  std::vector<actors::prefix_match> no_match;
  pool.look_up({}, no_match);
  std::vector<std::int32_t> granted;
  pool.grant(n, granted);
  pool.give(id, granted);
  out.insert(out.end(), granted.begin(), granted.end());
  return true;
}

} // namespace twill::test
