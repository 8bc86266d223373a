#include "actors/batcher/prefix_cache_client.hpp"

#include <algorithm>
#include <utility>

namespace twill::actors {

std::vector<prefix_query> prefix_cache_client::queries(std::span<const sequence_id> candidates,
                                                       const sequence_groups& groups) const {
  std::vector<prefix_query> asked;
  const std::int32_t width = limits_.block_tokens;
  for (sequence_id id : candidates) {
    const auto& s = groups.at(id);
    const std::int32_t known = s.n_known();
    // All tokens of a prompt are computed, and no cached KV is reused, if the request asks for
    // log-probabilities of the prompt or for the mean of its hidden states.
    const bool may_reuse = shareable(known) && !s.spec.needs_all_rows();
    const std::int32_t reusable = may_reuse ? (known - 1) / width * width : 0;
    asked.push_back(
        {id, s.known_tokens(0, reusable), s.spec.cache_scope, (known + width - 1) / width});
  }
  return asked;
}

std::span<const prefix_hit> prefix_cache_client::hits(const sequence_groups& groups) {
  hits_.clear();
  std::erase_if(matches_,
                [&](const prefix_match& m) { return groups.find_sequence(m.id) == nullptr; });
  for (const prefix_match& m : matches_) {
    const auto n_blocks = static_cast<std::int32_t>(m.blocks.size());
    hits_.push_back(
        {m.id, n_blocks, m.n_evictable, groups.at(m.id).fetched.after(n_blocks), m.kept});
  }
  return hits_;
}

prefix_cache_client::begun prefix_cache_client::begin(std::span<const sequence_id> opened,
                                                      sequence_groups& groups) {
  begun all;
  // Sequences are opened in the order of their matches, but between them there may be matches of
  // sequences that were put off.
  auto next = matches_.begin();
  for (sequence_id id : opened) {
    const auto is_it = [&](const prefix_match& m) { return m.id == id; };
    auto match = std::find_if(next, matches_.end(), is_it);
    if (match == matches_.end()) match = std::find_if(matches_.begin(), next, is_it);
    if (match == matches_.end() || match->id != id) continue; // it was not looked up
    next = match + 1;
    match->id = 0; // no sequence has this id; the match is removed below
    if (match->blocks.empty()) continue;
    auto& s = groups.at(id);
    s.blocks = match->blocks;
    s.n_inserted = static_cast<std::int32_t>(s.blocks.size());
    all.reuses.push_back({id, std::move(match->blocks)});
    all.n_evictable += match->n_evictable;
  }
  std::erase_if(matches_, [](const prefix_match& m) { return m.id == 0; });
  return all;
}

void prefix_cache_client::note_computed(sequence_id id, sequence_groups::sequence& s,
                                        std::int32_t n_computed, const sequence_groups& groups) {
  const std::int32_t width = limits_.block_tokens;
  // most decodes return here, since they complete no block
  if (!limits_.enabled || n_computed / width <= s.n_inserted) return;
  if (!shareable(static_cast<std::int32_t>(s.spec.prompt->size()))) return;
  if (!shareable(n_computed)) n_computed = limits_.shareable_length;
  const std::int32_t full = n_computed / width;
  if (full <= s.n_inserted) return;
  inserts_.push_back({id, s.known_tokens(s.n_inserted * width, full * width), s.spec.cache_scope});
  if (!matches_.empty()) drop_outdated(s, full, groups);
  s.n_inserted = full;
}

/// Drops the matches that end within the blocks [s.n_inserted, n_full) of the sequence and whose
/// sequences go on with the same tokens.
void prefix_cache_client::drop_outdated(const sequence_groups::sequence& s, std::int32_t n_full,
                                        const sequence_groups& groups) {
  std::erase_if(matches_, [&](const prefix_match& m) {
    const auto n_blocks = static_cast<std::int32_t>(m.blocks.size());
    if (n_blocks < s.n_inserted || n_blocks >= n_full) return false;
    const auto* waits = groups.find_sequence(m.id);
    if (waits == nullptr || waits->spec.needs_all_rows() ||
        waits->spec.cache_scope != s.spec.cache_scope)
      return false;
    const std::int32_t end = (n_blocks + 1) * limits_.block_tokens;
    // The last token of a sequence is always computed.
    if (!shareable(waits->n_known()) || waits->n_known() <= end) return false;
    const auto begin_of_block = n_blocks * limits_.block_tokens;
    return waits->known_tokens(begin_of_block, end) == s.known_tokens(begin_of_block, end) &&
           waits->known_tokens(0, begin_of_block) == s.known_tokens(0, begin_of_block);
  });
}

void prefix_cache_client::forget_device() {
  matches_.clear();
  inserts_.clear();
}

} // namespace twill::actors
