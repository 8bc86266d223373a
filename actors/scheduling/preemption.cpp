#include "actors/scheduling/preemption.hpp"

#include <algorithm>

namespace twill::actors {

namespace {

/// Sequences that may be preempted, each list in the order of service.
struct candidates {
  std::vector<scheduled_sequence*> paused, later;
  /// blocks that sequences which are leaving already will give back
  std::int64_t incoming_blocks = 0;
  bool any_leaving = false;
};

candidates find_candidates(const shortage& lacking, const running_order& running,
                           const service_order& waiting) {
  candidates found;
  const bool decodes_starve = lacking.decode_blocks > 0;
  for (const auto& [key, s] : running) {
    if (s->leaving != scheduled_sequence::exit::none) {
      found.incoming_blocks += s->own_blocks();
      found.any_leaving = true;
    } else if (s->paused) {
      found.paused.push_back(s);
    } else if (decodes_starve && key >= *lacking.first_starved) {
      found.later.push_back(s);
    }
  }
  if (!decodes_starve && lacking.head_blocks == 0) return found;
  // Waiting followers hold blocks if their lease was forked already.
  for (const auto& [key, s] : waiting) {
    if (s->blocks == 0) continue;
    if (s->paused)
      found.paused.push_back(s);
    else if (decodes_starve ? key >= *lacking.first_starved : key > lacking.head)
      found.later.push_back(s);
  }
  return found;
}

bool served_later(const scheduled_sequence* a, const scheduled_sequence* b) {
  return a->key > b->key;
}

} // namespace

std::vector<scheduled_sequence*> choose_preempted(const shortage& lacking,
                                                  const running_order& running,
                                                  const service_order& waiting) {
  std::vector<scheduled_sequence*> chosen;
  if (lacking.decode_blocks == 0 && lacking.head_blocks == 0 && !lacking.running_set_full)
    return chosen;
  candidates found = find_candidates(lacking, running, waiting);
  std::sort(found.paused.begin(), found.paused.end(), served_later);
  std::sort(found.later.begin(), found.later.end(), served_later);
  if (lacking.running_set_full) {
    if (!found.any_leaving && !found.paused.empty()) chosen.push_back(found.paused.front());
    return chosen;
  }
  std::int64_t need = std::max(lacking.decode_blocks, lacking.head_blocks) - found.incoming_blocks;
  found.paused.insert(found.paused.end(), found.later.begin(), found.later.end());
  for (scheduled_sequence* s : found.paused) {
    if (need <= 0) break;
    need -= s->own_blocks();
    chosen.push_back(s);
  }
  return chosen;
}

scheduled_sequence* choose_displaced(const shortage& lacking, const running_set& running,
                                     const scheduled_sequence& head) {
  if (lacking.decode_blocks > 0) return nullptr;
  if (!lacking.running_set_full && lacking.head_blocks == 0) return nullptr;
  const std::int64_t with_head = running.of(head.client) + 1;
  const auto has_too_many = [&](const running_set::share& of) {
    return (of.running - 1) * std::int64_t{head.weight} >= with_head * of.weight;
  };
  const auto& shares = running.shares();
  if (std::none_of(shares.begin(), shares.end(),
                   [&](const auto& one) { return has_too_many(one.second); }))
    return nullptr;
  scheduled_sequence* last = nullptr;
  for (const auto& [key, s] : running) {
    // a sequence is leaving, so a place becomes free anyway
    if (s->leaving != scheduled_sequence::exit::none) return nullptr;
    if (!s->displaced && has_too_many(shares.at(s->client))) last = s;
  }
  return last;
}

} // namespace twill::actors
