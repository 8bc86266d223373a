#include "actors/batcher/batcher_snapshot.hpp"

#include <cstdint>
#include <map>
#include <utility>

namespace twill::actors {

scheduler_snapshot snapshot_of(const sequence_groups& groups, const scheduler& running_set,
                               kv_leases leases) {
  scheduler_snapshot snapshot = std::move(leases.snapshot);
  std::map<sequence_id, scheduler_snapshot::sequence> all;
  groups.each_sequence(
      [&](sequence_id id, const sequence_groups::sequence& s, const sequence_groups::group& g) {
        auto& one = all[id];
        one.request = s.request;
        one.choice = s.choice;
        one.tenant = g.tenant;
        one.client_id = g.client_id;
        one.running = running_set.is_running(id);
        one.paused = g.paused;
        one.tokens = s.n_known();
        one.max_tokens = static_cast<std::int32_t>(s.spec.prompt->size()) + s.spec.max_new;
      });
  for (auto& lease : leases.leases) {
    const auto found = all.find(lease.id);
    auto& holder = found == all.end() ? snapshot.orphans.emplace_back() : found->second;
    holder.id = lease.id;
    holder.blocks = std::move(lease.blocks);
    holder.n_blocks = lease.n_blocks;
  }
  for (auto& [id, one] : all) {
    one.id = id;
    snapshot.sequences.push_back(std::move(one));
  }
  return snapshot;
}

} // namespace twill::actors
