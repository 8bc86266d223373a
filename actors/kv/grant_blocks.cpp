#include "actors/kv/grant_blocks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

namespace twill::actors {

namespace {

/// Looks up the queries' prefixes and returns how many blocks to grant; the pool may have fewer.
/// Sequences are admitted in the order of their queries. So the first one that lacks more blocks
/// than can be granted is the last one that is looked up, and its match is not kept.
std::int64_t match_prefixes(block_pool& pool, const block_request& request,
                            std::vector<prefix_match>& matches) {
  std::int64_t n = request.n_ahead;
  std::int64_t available = pool.available(); // without the blocks of kept matches
  pool.look_up(request.queries, matches, [&](const prefix_match& match) {
    const prefix_query& query = request.queries[matches.size()];
    const auto n_matched = static_cast<std::int32_t>(match.blocks.size());
    const std::int32_t lacking = std::max(query.n_blocks - n_matched, 0);
    if (n + lacking > available - match.n_evictable) return false;
    n += lacking;
    available -= match.n_evictable;
    return true;
  });
  const bool all_fit = matches.empty() || matches.back().kept;
  return all_fit ? n + request.n_more : n;
}

/// Reserves host memory for KV blocks that leave the device and that neither host memory nor disk
/// has yet. `blocks` has the beginning of a prefix first. A block is of no use without the blocks
/// before it in its prefix, so those get memory first.
void spill(kv_tiers& tiers, std::vector<block_pool::named_block> blocks, kv_grant& grant) {
  std::unordered_set<block_key, block_key_hash> lost;
  for (auto& [block, identity] : blocks) {
    if (lost.contains(identity.parent)) {
      tiers.note_dropped();
      lost.insert(identity.key);
    } else if (host_block to = tiers.take_place()) {
      grant.spills.push_back({block, std::move(identity), std::move(to)});
    } else {
      lost.insert(identity.key);
    }
  }
}

using named_blocks = std::vector<block_pool::named_block>;

/// Returns the blocks that were inserted since the last grant and that are still in the prefix
/// tree; an empty list unless `wanted`.
named_blocks take_inserted(block_pool& pool, bool wanted) {
  named_blocks inserted;
  for (const std::int32_t block : pool.take_inserted())
    if (wanted && pool.holds(block)) inserted.push_back({block, pool.identity(block)});
  return inserted;
}

void report(kv_event_log& log, const named_blocks& evicted, const named_blocks& inserted) {
  for (const auto& one : evicted)
    log.removed(one.identity.key, kv_medium::device);
  for (const auto& one : inserted)
    log.stored(one.identity, kv_medium::device);
}

void use_tiers(const block_pool& pool, const block_request& request, kv_tiers& tiers,
               steady_clock::time_point now, named_blocks evicted, named_blocks inserted,
               kv_grant& grant) {
  const auto is_known = [&](const auto& one) { return tiers.touch(one.identity.key); };
  std::erase_if(evicted, is_known);
  std::reverse(evicted.begin(), evicted.end()); // they were evicted children before parents
  spill(tiers, std::move(evicted), grant);
  if (tiers.keeps()) {
    std::erase_if(inserted, is_known);
    spill(tiers, std::move(inserted), grant);
  }
  for (std::size_t i = 0; i < grant.matches.size(); ++i) {
    const prefix_query& query = request.queries[i];
    prefix_match& match = grant.matches[i];
    if (!match.kept) continue; // pool.grant() may have evicted its blocks
    const std::size_t found = match.blocks.size() * static_cast<std::size_t>(pool.block_tokens());
    tiers.match(pool.name_of_end(match, query.scope), std::span(query.tokens).subspan(found), now,
                match.tier_keys);
  }
}

} // namespace

kv_grant grant_blocks(block_pool& pool, const block_request& request, kv_tiers* tiers,
                      steady_clock::time_point now, kv_event_log* log) {
  kv_grant grant;
  const std::int64_t n = match_prefixes(pool, request, grant.matches);
  pool.grant(n, grant.blocks);
  if (tiers != nullptr || log != nullptr) {
    auto evicted = pool.take_evicted();
    auto inserted = take_inserted(pool, log != nullptr || tiers->keeps());
    if (log != nullptr) report(*log, evicted, inserted);
    if (tiers != nullptr)
      use_tiers(pool, request, *tiers, now, std::move(evicted), std::move(inserted), grant);
  }
  grant.free_blocks = pool.available();
  return grant;
}

} // namespace twill::actors
