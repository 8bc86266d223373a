// tier_client: the batcher's side of the KV tiers off the device (host memory and disk). It decides
// whether a fetch is worth its time, tracks which sequences wait for a fetch, and reports which
// blocks were spilled, that is, copied from the device to host memory.
//
// One thread at a time (the batcher's). A fetch is worth its time unless measurements say that
// computing the blocks again takes less time. A fetch that is answered too late is of no use, so
// each fetch is given up after the time that tier_speeds::patience() returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "actors/batcher/sequence_groups.hpp"
#include "actors/messages.hpp"

namespace twill::actors {

/// Receives the orders to the tiers off the device.
class tier_sink {
public:
  virtual ~tier_sink() = default;
  /// The answer comes through batcher_core::fetched(). If it has not come after `patience`,
  /// fetched() is called with `given_up` and no blocks.
  virtual void fetch(fetch_blocks order, std::chrono::milliseconds patience) = 0;
  virtual void spilled(blocks_spilled blocks) = 0;
};

/// Measured speeds of the tiers and of computing blocks.
class tier_speeds {
public:
  explicit tier_speeds(std::int32_t block_tokens) : block_tokens_(block_tokens) {}

  /// A step took `seconds` to compute `tokens` prompt tokens and nothing else.
  void note_prefill(std::int32_t tokens, double seconds);
  /// The executor took `seconds` to copy `blocks` blocks.
  void note_copies(std::size_t blocks, double seconds);
  /// The tiers took `seconds` to bring `blocks` blocks to host memory.
  void note_fetch(std::size_t blocks, double seconds);
  /// A fetch of `blocks` blocks was given up after `seconds`.
  void note_given_up(std::size_t blocks, double seconds);

  /// Whether `blocks` should be fetched rather than computed. One refusal in sixteen is overruled,
  /// so that a disk that was slow for a while is measured again.
  bool worth_fetching(std::size_t blocks);
  /// How long the batcher waits for the answer to a fetch of `blocks` blocks.
  std::chrono::milliseconds patience(std::size_t blocks) const;
  std::uint64_t n_refused() const { return n_refused_; }

private:
  std::int32_t block_tokens_;
  double compute_s_ = 0, copy_s_ = 0, fetch_s_ = 0; ///< for one block; 0: not measured yet
  std::uint64_t n_slow_ = 0; ///< fetches that would have taken longer than computing
  std::uint64_t n_refused_ = 0;
};

class tier_client {
public:
  /// If `tiers` is null, blocks stay on the device; otherwise it must outlive this object.
  explicit tier_client(std::int32_t block_tokens, tier_sink* tiers = nullptr)
      : speeds(block_tokens), tiers_(tiers) {}

  /// Whether there are tiers off the device.
  bool has_tiers() const { return tiers_ != nullptr; }
  /// Starts a fetch if host memory or disk has blocks that follow those of `match` on the device,
  /// and if the fetch is worth its time. `fetched` belongs to the sequence of `match`. Returns
  /// whether the sequence now waits for the fetch.
  bool start_fetch(const prefix_match& match, sequence_groups::fetched_blocks& fetched,
                   steady_clock::time_point now);
  /// Takes the answer to a fetch, and measures how long it took. Returns the sequence that waited
  /// for it; 0 if the fetch had ended before.
  sequence_id end_fetch(const blocks_fetched& answer, steady_clock::time_point now);
  /// The step of this plan is done: records how long the step and its copies took, and reports the
  /// blocks that it has spilled, that is, copied to host memory.
  void step_done(const step_plan& plan, const step_result& result);

  struct fetch {
    sequence_id id = 0;
    steady_clock::time_point asked;
    std::size_t n_blocks = 0; ///< number of blocks asked for
  };
  std::uint64_t begin(sequence_id id, steady_clock::time_point now, std::size_t n_blocks) {
    under_way_.emplace(++last_id_, fetch{id, now, n_blocks});
    return last_id_;
  }
  /// Ends the fetch and returns it; the result's `id` is 0 if the fetch had ended before.
  fetch end(std::uint64_t fetch_id) {
    const auto found = under_way_.find(fetch_id);
    if (found == under_way_.end()) return {};
    const fetch ended = found->second;
    under_way_.erase(found);
    return ended;
  }
  /// Gives up all fetches; returns the sequences that waited for them.
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
  tier_sink* tiers_;                                   ///< null: blocks stay on the device
  std::unordered_map<std::uint64_t, fetch> under_way_; ///< by fetch id
  std::uint64_t last_id_ = 0;
};

} // namespace twill::actors
