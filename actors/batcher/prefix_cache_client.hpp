// prefix_cache_client: the batcher's part in cached prefixes: which beginnings it asks the
// allocator for, which cached blocks a lease begins with, and which computed blocks it reports.
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
  /// Sequences up to this length have KV that depends on their tokens alone; 0: all have.
  std::int32_t shareable_length = 0;
};

class prefix_cache_client {
public:
  explicit prefix_cache_client(const prefix_cache_limits& limits) : limits_(limits) {}

  /// One query for each candidate, in their order: its full blocks of known tokens but the last
  /// token, which is always computed, because its logits are drawn from.
  std::vector<prefix_query> queries(std::span<const sequence_id> candidates,
                                    const sequence_groups& groups) const;
  /// The answer to the queries; valid for the next schedule.
  void take_matches(std::vector<prefix_match> matches) { matches_ = std::move(matches); }
  /// Takes out the matches for which `leave_out` says so; their sequences are candidates no longer.
  template <class F>
  void leave_out(F&& leave_out) {
    std::erase_if(matches_, leave_out);
  }
  /// The matches as the scheduler needs them. Valid until the next call.
  std::span<const prefix_hit> hits(const sequence_groups& groups);
  /// Begins the block tables of the sequences in `reuses` with their matches; drops all matches.
  std::vector<lease_reuse> begin_reused(std::span<const sequence_id> reuses,
                                        sequence_groups& groups);

  /// A finished step has computed the first n_computed positions of the sequence.
  void note_computed(sequence_id id, sequence_groups::sequence& s, std::int32_t n_computed);
  /// Moves out what has been noted since the last call; it goes into the next kv_change.
  std::vector<prefix_insert> take_inserts() { return std::exchange(inserts_, {}); }

  void forget_device();

private:
  bool shareable(std::int32_t n_tokens) const {
    return limits_.shareable_length == 0 || n_tokens <= limits_.shareable_length;
  }

  prefix_cache_limits limits_;
  std::vector<prefix_match> matches_;
  std::vector<prefix_hit> hits_;
  std::vector<prefix_insert> inserts_;
};

} // namespace twill::actors
