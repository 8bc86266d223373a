#include <algorithm>

#include "actors/batcher/batcher_core.hpp"
#include "actors/detail/holder_name.hpp"

namespace twill::actors {

namespace {
/// The name of a sequence that belongs to no request any more.
std::string nameless(sequence_id id) {
  return "sequence " + std::to_string(id);
}
} // namespace

/// Returns the name under which a ledger (config/base/ledger.hpp) lists what the sequence holds:
/// the name of its request, or a name of the sequence if it belongs to no request any more.
std::string batcher_core::holder_of(sequence_id id) const {
  const sequence* s = groups_.find_sequence(id);
  return s == nullptr ? nameless(id) : holder_name(s->request);
}

holder_names_by_sequence batcher_core::holders() const {
  holder_names_by_sequence names;
  groups_.each_sequence(
      [&](sequence_id id, const sequence& s, const auto&) { names[id] = holder_name(s.request); });
  return names;
}

void add_leases(const kv_leases& leases, const holder_names_by_sequence& holders, ledger& to) {
  const std::string blocks = "KV blocks", prefixes = "prefixes of blocks in use";
  to.taken(blocks, leases.snapshot.used_blocks);
  for (const auto& lease : leases.leases) {
    const auto found = holders.find(lease.id);
    const std::string holder = found == holders.end() ? nameless(lease.id) : found->second;
    to.held(blocks, holder, lease.n_first);
    to.held(scheduler::known_kv_blocks, holder, lease.n_blocks);
  }
  if (!leases.leases.empty()) to.exists(prefixes, true);
  to.held(blocks, prefixes, leases.n_pinned_by_child);
}

ledger batcher_core::account() const {
  ledger all;
  groups_.account(all);
  scheduler_.account(all, [this](sequence_id id) { return holder_of(id); });

  // Each request that has a row in a step under way holds the step.
  all.taken("steps under way", static_cast<std::int64_t>(pipeline_.n_outstanding()));
  all.taken("fetches of KV blocks", static_cast<std::int64_t>(tiers_.under_way().size()));
  for (const auto& [fetch_id, fetch] : tiers_.under_way())
    all.held("fetches of KV blocks", holder_of(fetch.id));
  return all;
}

void batcher_core::account(const listed_states& states, ledger& to) const {
  const std::string in_executor = "sequences in the executor", next = "the next step's closes";
  const auto& closes = pipeline_.closes();
  to.exists(next, true);
  to.taken(in_executor, static_cast<std::int64_t>(states.open.size() + states.skipped.size()));
  for (const auto* ids : {&states.open, &states.skipped})
    for (const sequence_id id : *ids) {
      const bool closes_next = std::find(closes.begin(), closes.end(), id) != closes.end();
      to.held(in_executor, closes_next ? next : holder_of(id));
    }
}

} // namespace twill::actors
