// prefix_query: the values with which the batcher looks up cached prefixes at the KV allocator
// (prefix_query, prefix_match), reports computed blocks (prefix_insert), and begins a sequence with
// cached blocks (lease_reuse).
#pragma once

#include <cstdint>
#include <vector>

#include "actors/kv/block_key.hpp"
#include "actors/scheduling/step_decision.hpp"

namespace twill::actors {

/// Asks for the blocks that hold the beginning of `tokens`; the number of tokens is a multiple of
/// the block size.
struct prefix_query {
  sequence_id id = 0;
  std::vector<std::int32_t> tokens;
  std::uint64_t scope = 0; ///< only blocks of this scope match (cache_scope.hpp)
  /// The number of blocks for all known tokens of the sequence. Those that the match lacks are
  /// granted if possible.
  std::int32_t n_blocks = 0;
};

struct prefix_match {
  sequence_id id = 0;
  std::vector<std::int32_t> blocks; ///< the longest prefix that is in the tree
  std::int32_t n_evictable = 0;     ///< the cached blocks of `blocks` that no earlier match counted
  /// keys of the following blocks, which are in tiers off the device
  std::vector<block_key> tier_keys;
  /// False: the blocks may be evicted before the next block_request.
  bool kept = true;
};

/// The next full blocks of a lease have been computed from `tokens`.
struct prefix_insert {
  sequence_id id = 0;
  std::vector<std::int32_t> tokens; // (n_blocks * block_tokens)
  std::uint64_t scope = 0;          ///< cache scope of the sequence
};

/// A lease that begins with the blocks of a match.
struct lease_reuse {
  sequence_id id = 0;
  std::vector<std::int32_t> blocks;
};

} // namespace twill::actors
