#include "actors/kv/apply_change.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/base/assert.hpp"
#include "config/base/id_ranges.hpp"

namespace twill::actors {

void apply_change(block_pool& pool, const kv_change& change, kv_event_log* log) {
  if (change.reset) pool.reset(change.n_blocks);
  if (change.reset && log != nullptr) log->device_is_empty();
  for (const prefix_insert& inserted : change.prefix_inserts)
    pool.insert(inserted);
  for (sequence_id id : change.drops)
    pool.drop(id);
  for (const lease_reuse& r : change.reuses) {
    const bool reused = pool.reuse(r);
    TWILL_ASSERT(reused, "no matched block is evicted before the next look-up");
  }
  std::span<const std::int32_t> granted = change.blocks;
  const auto give = [&](sequence_id id, std::int32_t n) {
    const auto n_blocks = static_cast<std::size_t>(n);
    TWILL_ASSERT(n_blocks <= granted.size(), "a change names a block for each growth");
    pool.give(id, granted.first(n_blocks));
    granted = granted.subspan(n_blocks);
  };
  for (const lease_growth& g : change.grows)
    give(g.id, g.n_blocks);
  for (const lease_fork& f : change.forks) {
    const bool forked = pool.fork(f.id, f.from, f.n_blocks);
    TWILL_ASSERT(forked, "a fork's source holds its prompt's blocks");
  }
  for (const lease_copy& c : change.copies)
    give(c.id, 1);
}

kv_leases describe(const block_pool& pool) {
  kv_leases all;
  std::vector<bool> held(static_cast<std::size_t>(pool.total()), false);
  pool.each_lease([&](sequence_id id, const std::vector<std::int32_t>& blocks) {
    all.leases.push_back({id, range_text(blocks), static_cast<std::int64_t>(blocks.size())});
  });
  std::sort(all.leases.begin(), all.leases.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  for (kv_leases::lease& one : all.leases)
    for (const std::int32_t block : pool.blocks(one.id)) {
      one.n_first += held[static_cast<std::size_t>(block)] ? 0 : 1;
      held[static_cast<std::size_t>(block)] = true;
    }
  id_ranges cached, pinned_by_child;
  for (std::int32_t block = 0; block < pool.total(); ++block) {
    if (pool.is_cached(block)) {
      cached.add(static_cast<std::uint64_t>(block));
    } else if (pool.holds(block) && !held[static_cast<std::size_t>(block)]) {
      pinned_by_child.add(static_cast<std::uint64_t>(block));
      ++all.n_pinned_by_child;
    }
  }
  all.snapshot.cached = cached.text();
  all.snapshot.pinned_by_child = pinned_by_child.text();
  all.snapshot.total_blocks = pool.total();
  all.snapshot.used_blocks = pool.used();
  all.snapshot.free_blocks = pool.free() + pool.ahead();
  return all;
}

} // namespace twill::actors
