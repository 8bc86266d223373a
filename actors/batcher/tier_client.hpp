// tier_client: the batcher's part in KV tiers off the device: which sequences wait for a fetch, and
// whether a fetch is worth its time.
//
// One thread at a time (the batcher's). A fetch is worth it unless what was measured says that
// computing the blocks again takes less time. A fetch that was answered late is of no use, so each
// has a time after which it is given up.
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "actors/messages.hpp"

namespace twill::actors {

/// What tiers take and how fast they are.
class tier_speeds {
public:
  explicit tier_speeds(std::int32_t block_tokens) : block_tokens_(block_tokens) {}

  /// A step computed so many tokens of prompts and nothing else.
  void note_prefill(std::int32_t tokens, double seconds);
  /// The executor copied so many blocks.
  void note_copies(std::size_t blocks, double seconds);
  /// The tiers took so long to bring so many blocks to host memory.
  void note_fetch(std::size_t blocks, double seconds);
  /// So many blocks did not come within their patience.
  void note_given_up(std::size_t blocks, double seconds);

  /// Whether `blocks` should be fetched and not computed. One refusal in sixteen is overruled, so
  /// that a disk that was slow for a while is measured again.
  bool worth_fetching(std::size_t blocks);
  /// For how long an answer is waited for.
  std::chrono::milliseconds patience(std::size_t blocks) const;
  std::uint64_t n_refused() const { return n_refused_; }

private:
  std::int32_t block_tokens_;
  double compute_s_ = 0, copy_s_ = 0, fetch_s_ = 0; ///< for one block; 0: not known
  std::uint64_t n_slow_ = 0; ///< fetches that would have taken longer than computing
  std::uint64_t n_refused_ = 0;
};

class tier_client {
public:
  explicit tier_client(std::int32_t block_tokens) : speeds(block_tokens) {}

  struct fetch {
    sequence_id id = 0;
    steady_clock::time_point asked;
    std::size_t n_blocks = 0; ///< that were asked for
  };
  std::uint64_t begin(sequence_id id, steady_clock::time_point now, std::size_t n_blocks) {
    under_way_.emplace(++last_id_, fetch{id, now, n_blocks});
    return last_id_;
  }
  /// Ends the fetch and returns it; its `id` is 0 when the fetch had ended before.
  fetch end(std::uint64_t fetch_id) {
    const auto found = under_way_.find(fetch_id);
    if (found == under_way_.end()) return {};
    const fetch ended = found->second;
    under_way_.erase(found);
    return ended;
  }
  /// Gives up all; returns the sequences that waited.
  std::vector<sequence_id> end_all() {
    std::vector<sequence_id> waited;
    for (const auto& [fetch_id, one] : under_way_)
      waited.push_back(one.id);
    under_way_.clear();
    return waited;
  }

  const auto& under_way() const { return under_way_; } ///< by fetch id

  tier_speeds speeds;

private:
  std::unordered_map<std::uint64_t, fetch> under_way_; ///< by fetch id
  std::uint64_t last_id_ = 0;
};

} // namespace twill::actors
