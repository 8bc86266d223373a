// The batcher's part in cached prefixes: what it asks for, begins with and prefix_inserts.
#include <utility>

#include "actors/batcher/batcher_core.hpp"

namespace twill::actors {

bool batcher_core::shareable(std::int32_t n_tokens) const {
  return limits_.shareable_length == 0 || n_tokens <= limits_.shareable_length;
}

std::vector<std::int32_t> batcher_core::known_tokens(const entry& e, std::int32_t first,
                                                     std::int32_t last) const {
  const auto& prompt = *e.spec.prompt;
  const auto length = static_cast<std::int32_t>(prompt.size());
  std::vector<std::int32_t> tokens;
  tokens.reserve(static_cast<std::size_t>(last - first));
  for (std::int32_t p = first; p < last; ++p)
    tokens.push_back(p < length ? prompt[static_cast<std::size_t>(p)]
                                : e.output[static_cast<std::size_t>(p - length)]);
  return tokens;
}

std::optional<kv_change> batcher_core::look_up() {
  scheduler_.candidates(candidates_);
  if (candidates_.empty()) return std::nullopt;
  kv_change change;
  const std::int32_t width = limits_.plan.block_tokens;
  for (sequence_id id : candidates_) {
    const entry& e = sequences_.at(id);
    const auto known = static_cast<std::int32_t>(e.spec.prompt->size() + e.output.size());
    // The last token is always computed: its logits are drawn from.
    const std::int32_t reusable = shareable(known) ? (known - 1) / width * width : 0;
    change.queries.push_back({id, known_tokens(e, 0, reusable)});
  }
  change.prefix_inserts = std::exchange(prefix_inserts_, {});
  return change;
}

void batcher_core::begin_reused(kv_change& change) {
  auto match = matches_.begin(); // in the order of admissions, those that were put off left out
  for (sequence_id id : decided_.reuses) {
    while (match->id != id)
      ++match;
    entry& e = sequences_.at(id);
    e.blocks = match->blocks;
    e.n_inserted = static_cast<std::int32_t>(e.blocks.size());
    change.reuses.push_back({id, std::move(match->blocks)});
  }
  matches_.clear();
}

void batcher_core::note_first_admission(const entry& e) {
  if (!limits_.plan.prefix_cache) return;
  const std::size_t cached = e.blocks.size() * static_cast<std::size_t>(limits_.plan.block_tokens);
  requests_.at(e.request).cached_tokens = static_cast<std::int32_t>(cached);
  stats_.update([&](engine_stats& s) {
    s.prefix_cache_queries += e.spec.prompt->size();
    s.prefix_cache_hits += cached;
  });
}

void batcher_core::insert_computed(sequence_id id, entry& e, std::int32_t computed) {
  if (!limits_.plan.prefix_cache) return;
  if (!shareable(static_cast<std::int32_t>(e.spec.prompt->size()))) return;
  if (!shareable(computed)) computed = limits_.shareable_length;
  const std::int32_t width = limits_.plan.block_tokens;
  const std::int32_t full = computed / width;
  if (full <= e.n_inserted) return;
  prefix_inserts_.push_back({id, known_tokens(e, e.n_inserted * width, full * width)});
  e.n_inserted = full;
}

} // namespace twill::actors
