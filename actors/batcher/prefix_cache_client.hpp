// prefix_cache_client: the batcher's side of the prefix cache. It decides which prefixes are looked
// up at the allocator, which cached blocks an admitted sequence begins with, and which computed
// blocks are reported to the allocator.
//
// One thread at a time (the batcher's).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "actors/batcher/sequence_groups.hpp"
#include "actors/messages.hpp"

namespace twill::actors {

struct prefix_cache_limits {
  bool enabled = false;
  std::int32_t block_tokens = 16;
  /// Up to this length (tokens), the KV of a sequence depends on its tokens alone and can be
  /// shared; beyond it, the model's rotary frequencies depend on the length. 0: any length.
  std::int32_t shareable_length = 0;
};

class prefix_cache_client {
public:
  explicit prefix_cache_client(const prefix_cache_limits& limits) : limits_(limits) {}

  /// Returns one query for each candidate, in the order of `candidates`. A query has the tokens of
  /// all full blocks of prompt and output so far, not counting the last token. The last token is
  /// always computed, because the next token is drawn from its logits.
  std::vector<prefix_query> queries(std::span<const sequence_id> candidates,
                                    const sequence_groups& groups) const;
  /// Takes the answers to the queries. They are valid until the next queries are sent.
  void take_matches(std::vector<prefix_match> matches) { matches_ = std::move(matches); }
  void drop_matches() { matches_.clear(); }
  /// Removes the matches for which `leave_out` returns true; their sequences are no longer
  /// candidates for admission.
  template <class F>
  void leave_out(F&& leave_out) {
    std::erase_if(matches_, leave_out);
  }
  /// Returns the matches of sequences that still exist, in the form that the scheduler needs. Valid
  /// until the next call.
  std::span<const prefix_hit> hits(const sequence_groups& groups);
  struct begun {
    std::vector<lease_reuse> reuses;
    std::int64_t n_evictable = 0; ///< the blocks of `reuses` that could have been evicted before
  };
  /// For each sequence of `opened` that has a match: begins its block table with the matched blocks
  /// and removes the match.
  begun begin(std::span<const sequence_id> opened, sequence_groups& groups);

  /// A finished step has computed the first n_computed positions of the sequence. Drops matches
  /// that these blocks would make longer, so that their sequences are looked up again.
  void note_computed(sequence_id id, sequence_groups::sequence& s, std::int32_t n_computed,
                     const sequence_groups& groups);
  /// Returns the blocks that steps have completed since the last call, and clears the list. The
  /// blocks go into the next kv_change, with which the allocator inserts them into the prefix
  /// cache.
  std::vector<prefix_insert> take_inserts() { return std::exchange(inserts_, {}); }

  void forget_device();

private:
  void drop_outdated(const sequence_groups::sequence& s, std::int32_t n_full,
                     const sequence_groups& groups);
  bool shareable(std::int32_t n_tokens) const {
    return limits_.shareable_length == 0 || n_tokens <= limits_.shareable_length;
  }

  prefix_cache_limits limits_;
  std::vector<prefix_match> matches_;
  std::vector<prefix_hit> hits_;
  std::vector<prefix_insert> inserts_;
};

} // namespace twill::actors
