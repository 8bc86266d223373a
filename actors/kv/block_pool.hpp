// block_pool: which KV blocks belong to which lease, and which blocks keep a prefix for later. It
// is accounting alone; the keys and values are the executor's.
//
// Pure; one thread at a time (the kv_allocator actor). A lease is an ordered list of blocks, named
// by its sequence. A full block whose KV is computed may be inserted into the prefix tree under its
// tokens. When its last lease ends it stays, cached, until another lease of its prefix reuses it or
// it is evicted. Invariants: used() + cached() + free() == total(). A block is used when it has
// references: one from each lease that holds it, one from each lease that goes on behind it in the
// tree, one from each used child in the tree. So a cached block has no used child, and every cached
// block can be evicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "actors/kv/prefix_tree.hpp"
#include "actors/kv/spilled_block.hpp"
#include "actors/scheduling/id_table.hpp"
#include "actors/scheduling/step_decision.hpp"

namespace twill::actors {

/// Asks which blocks hold the beginning of `tokens`, whose number is whole blocks.
struct prefix_query {
  sequence_id id = 0;
  std::vector<std::int32_t> tokens;
  std::uint64_t scope = 0; ///< only blocks of this scope match (cache_scope.hpp)
};

struct prefix_match {
  sequence_id id = 0;
  std::vector<std::int32_t> blocks; ///< the longest prefix that is in the tree
  std::int32_t n_evictable = 0;     ///< cached blocks among them that no earlier match counted
  std::vector<block_key> tier_keys; ///< the blocks that follow in the tiers off the device
};

/// The next full blocks of a lease have been computed from `tokens`.
struct prefix_insert {
  sequence_id id = 0;
  std::vector<std::int32_t> tokens; // (n_blocks * block_tokens)
  std::uint64_t scope = 0;          ///< of the sequence
};

/// A lease that begins with the blocks of a match.
struct lease_reuse {
  sequence_id id = 0;
  std::vector<std::int32_t> blocks;
};

class block_pool {
public:
  block_pool(std::int32_t n_blocks, std::int32_t block_tokens,
             prefix_tree::hash_function hash = prefix_tree::mixed_hash);

  /// Appends n blocks to a lease (begun when unknown) and to `out`; all of them, or none and false.
  /// Free blocks go first, then cached ones: the least recently used, children before parents.
  bool grow(sequence_id id, std::int32_t n, std::vector<std::int32_t>& out);
  /// Begins lease `id` with the first n blocks of `from`; false when `from` has not that many.
  bool fork(sequence_id id, sequence_id from, std::int32_t n);
  /// Ends a lease; blocks that no other lease holds are cached or free. Unknown ids are ignored.
  void drop(sequence_id id);
  /// Ends every lease and forgets every prefix. The pool has `n_blocks` blocks from now on; 0: as
  /// many as before.
  void reset(std::int32_t n_blocks = 0);

  /// Appends one match per query. Leases that begin with matches must be begun in the order of the
  /// queries, before any grow().
  void look_up(std::span<const prefix_query> queries, std::vector<prefix_match>& out) const;
  /// Begins a lease with the blocks of a match; false when they have left the tree meanwhile.
  bool reuse(const lease_reuse& begin);
  /// Inserts the next full blocks of a lease into the tree. Where the tree has a block with equal
  /// tokens, that block stays in it and the lease keeps its own copy.
  void insert(const prefix_insert& computed);

  /// From now on blocks of the tree have names, and those that are evicted or inserted are noted.
  void name_blocks(const hash_key& key) { tree_.name_blocks(key); }
  /// Moves out what was evicted from the tree since the last call; the blocks have other leases
  /// now, which no step has written to yet.
  struct named_block {
    std::int32_t block = 0;
    block_identity identity;
  };
  std::vector<named_block> take_evicted() { return std::exchange(evicted_, {}); }
  /// Moves out the blocks that were inserted since the last call.
  std::vector<std::int32_t> take_inserted() { return std::exchange(inserted_, {}); }
  block_identity identity(std::int32_t block) const { return tree_.identity(block); }
  bool holds(std::int32_t block) const { return tree_.holds(block); }
  /// The name of what comes last in a match.
  block_key name_of_end(const prefix_match& match, std::uint64_t scope) const {
    return tree_.name(match.blocks.empty() ? prefix_tree::root : match.blocks.back(), scope);
  }

  std::int32_t block_tokens() const { return block_tokens_; }
  std::int64_t total() const { return static_cast<std::int64_t>(blocks_.size()); }
  std::int64_t free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t cached() const { return n_cached_; }
  std::int64_t used() const { return total() - free() - cached(); }
  /// Blocks that grow() can grant.
  std::int64_t available() const { return free() + cached(); }
  std::size_t leases() const { return leases_.size(); }
  /// Blocks of a lease; empty when unknown.
  const std::vector<std::int32_t>& blocks(sequence_id id) const;
  /// Calls visit(id, blocks) for each lease, in any order.
  template <class F>
  void each_lease(F&& visit) const {
    leases_.for_each([&](sequence_id id, const lease& l) { visit(id, l.blocks); });
  }
  std::int32_t references(std::int32_t block) const {
    return blocks_[static_cast<std::size_t>(block)].references;
  }
  bool is_cached(std::int32_t block) const { return tree_.holds(block) && references(block) == 0; }

private:
  struct lease {
    std::vector<std::int32_t> blocks;
    std::size_t n_inserted = 0; ///< first blocks whose tokens the tree knows
    /// The last inserted block in the tree: the lease's own, or another block with equal tokens.
    std::int32_t tip = prefix_tree::root;
  };

  static constexpr std::int32_t nobody = -1;
  struct block_state {
    std::int32_t references = 0;
    std::int32_t before = nobody, after = nobody; ///< of cached blocks, by the time of release
  };

  block_state& at(std::int32_t block) { return blocks_[static_cast<std::size_t>(block)]; }
  void cache(std::int32_t block);
  void uncache(std::int32_t block);
  lease& begin_lease(sequence_id id);
  std::int32_t take();
  void refer(std::int32_t block);
  void release(std::int32_t block);
  void move_tip(lease& l, std::int32_t to);
  std::vector<std::int32_t> find(const prefix_query& query) const;

  std::int32_t block_tokens_;
  std::vector<block_state> blocks_;                // (n_blocks)
  std::vector<std::int32_t> free_;                 ///< the last is taken next
  std::int32_t oldest_ = nobody, newest_ = nobody; ///< of the cached blocks
  std::int64_t n_cached_ = 0;
  mutable std::vector<std::uint64_t> counted_; // (n_blocks) the last look_up() that counted it
  mutable std::uint64_t n_look_ups_ = 0;
  prefix_tree tree_;
  id_table<lease> leases_;
  std::vector<named_block> evicted_;   ///< where blocks have names
  std::vector<std::int32_t> inserted_; ///< where blocks have names
};

} // namespace twill::actors
