// lease_blocks: blocks for leases in tests. A lease is the list of blocks of one sequence. grow()
// is for tests that are not about granting blocks ahead, take_granted() for those that are.
#pragma once

#include <algorithm>
#include <cstddef>
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

/// Removes up to n blocks from `granted` and returns them, beginning with the one at index `first`
/// modulo the number of blocks.
inline std::vector<std::int32_t> take_granted(std::vector<std::int32_t>& granted, std::size_t n,
                                              std::size_t first) {
  if (!granted.empty())
    std::rotate(granted.begin(),
                granted.begin() + static_cast<std::ptrdiff_t>(first % granted.size()),
                granted.end());
  const auto last = granted.begin() + static_cast<std::ptrdiff_t>(std::min(n, granted.size()));
  std::vector<std::int32_t> taken(granted.begin(), last);
  granted.erase(granted.begin(), last);
  return taken;
}

} // namespace twill::test
