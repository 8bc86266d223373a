#include "actors/batcher/prefix_cache_client.hpp"

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
    asked.push_back({id, s.known_tokens(0, reusable), s.spec.cache_scope});
  }
  return asked;
}

std::span<const prefix_hit> prefix_cache_client::hits(const sequence_groups& groups) {
  hits_.clear();
  for (const prefix_match& m : matches_) {
    const auto n_blocks = static_cast<std::int32_t>(m.blocks.size());
    hits_.push_back({m.id, n_blocks, m.n_evictable, groups.at(m.id).fetched.after(n_blocks)});
  }
  return hits_;
}

std::vector<lease_reuse> prefix_cache_client::begin_reused(std::span<const sequence_id> reuses,
                                                           sequence_groups& groups) {
  std::vector<lease_reuse> begun;
  // `matches_` is in the order of admissions, and may hold matches of sequences that were put off
  auto match = matches_.begin();
  for (sequence_id id : reuses) {
    while (match->id != id)
      ++match;
    auto& s = groups.at(id);
    s.blocks = match->blocks;
    s.n_inserted = static_cast<std::int32_t>(s.blocks.size());
    begun.push_back({id, std::move(match->blocks)});
  }
  matches_.clear();
  return begun;
}

void prefix_cache_client::note_computed(sequence_id id, sequence_groups::sequence& s,
                                        std::int32_t n_computed) {
  const std::int32_t width = limits_.block_tokens;
  // most decodes return here, since they complete no block
  if (!limits_.enabled || n_computed / width <= s.n_inserted) return;
  if (!shareable(static_cast<std::int32_t>(s.spec.prompt->size()))) return;
  if (!shareable(n_computed)) n_computed = limits_.shareable_length;
  const std::int32_t full = n_computed / width;
  if (full <= s.n_inserted) return;
  inserts_.push_back({id, s.known_tokens(s.n_inserted * width, full * width), s.spec.cache_scope});
  s.n_inserted = full;
}

void prefix_cache_client::forget_device() {
  matches_.clear();
  inserts_.clear();
}

} // namespace twill::actors
