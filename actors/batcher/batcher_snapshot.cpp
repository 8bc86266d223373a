#include "actors/batcher/batcher_snapshot.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace twill::actors {

scheduler_snapshot snapshot_of(const sequence_groups& groups, const scheduler& running_set) {
  scheduler_snapshot snapshot;
  groups.each_sequence(
      [&](sequence_id id, const sequence_groups::sequence& s, const sequence_groups::group& g) {
        auto& one = snapshot.sequences.emplace_back();
        one.id = id;
        one.request = s.request;
        one.choice = s.choice;
        one.tenant = g.tenant;
        one.client_id = g.client_id;
        one.running = running_set.is_running(id);
        one.paused = g.paused;
        one.tokens = s.n_known();
        one.max_tokens = static_cast<std::int32_t>(s.spec.prompt->size()) + s.spec.max_new;
      });
  std::sort(snapshot.sequences.begin(), snapshot.sequences.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return snapshot;
}

scheduler_snapshot with_blocks(scheduler_snapshot snapshot, kv_leases leases) {
  auto sequences = std::exchange(snapshot.sequences, {});
  snapshot = std::move(leases.snapshot);
  snapshot.sequences = std::move(sequences);
  for (auto& lease : leases.leases) {
    const auto found =
        std::lower_bound(snapshot.sequences.begin(), snapshot.sequences.end(), lease.id,
                         [](const auto& s, sequence_id id) { return s.id < id; });
    const bool known = found != snapshot.sequences.end() && found->id == lease.id;
    auto& holder = known ? *found : snapshot.orphans.emplace_back();
    holder.id = lease.id;
    holder.blocks = std::move(lease.blocks);
    holder.n_blocks = lease.n_blocks;
  }
  return snapshot;
}

} // namespace twill::actors
