// block_pool: tracks which KV blocks belong to which lease, and which blocks keep a prefix for
// later use. The pool is accounting only; the executor has the keys and values.
//
// An object has no side effects outside itself; one thread at a time may use it (the kv_allocator
// actor). A lease is an ordered list of blocks, named by its sequence. A full block whose KV is
// computed may be inserted into the prefix tree under its tokens. When the last lease of such a
// block ends, the block stays as a cached block until another lease of its prefix reuses it or it
// is evicted. Blocks are granted ahead of their use: the batcher gives a granted block to a
// sequence later, without asking.
//
// Invariants: used() + ahead() + cached() + free() == total(). A block is used while it has
// references: one from each lease that holds it, one from each lease whose tokens end at it in the
// tree (lease::tip), and one from each used child in the tree. So a cached block has no used child,
// and every cached block can be evicted. A block that was granted ahead is not used and has one
// reference, which becomes that of the lease that it is given to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "actors/kv/prefix_query.hpp"
#include "actors/kv/prefix_tree.hpp"
#include "actors/kv/spilled_block.hpp"
#include "actors/scheduling/id_table.hpp"
#include "actors/scheduling/step_decision.hpp"

namespace twill::actors {

class block_pool {
public:
  block_pool(std::int32_t n_blocks, std::int32_t block_tokens,
             prefix_tree::hash_function hash = prefix_tree::mixed_hash);

  /// Appends up to n blocks to `out`: they are granted ahead of their use, and no lease has them
  /// yet. Free blocks are taken first, then cached ones: the least recently used first, children
  /// before parents. Blocks that the last look_up() matched and kept are not granted.
  void grant(std::int64_t n, std::vector<std::int32_t>& out);
  /// Gives blocks that were granted ahead to the lease (list of blocks) of sequence `id`, which
  /// gets an empty lease first if it has none.
  void give(sequence_id id, std::span<const std::int32_t> granted);
  /// Begins a lease (list of blocks) for sequence `id`, which shares the first n blocks of the
  /// lease of sequence `from`. Returns false if `from` has fewer blocks.
  bool fork(sequence_id id, sequence_id from, std::int32_t n);
  /// Ends a lease; blocks that no other lease holds become cached or free. Unknown ids are ignored.
  void drop(sequence_id id);
  /// Takes all blocks, given or not, back and removes all cached prefixes. From now on the pool has
  /// `n_blocks` blocks; 0: as many as before.
  void reset(std::int32_t n_blocks = 0);

  /// Appends one match for each query. The matched blocks stay in the tree at least until the next
  /// look_up(). prefix_match::n_evictable is the number of cached blocks that reuse() would take; a
  /// block of several matches is counted in the first of them only. If `keep` is given, it is
  /// called with each match before the match is appended. When it returns false, the match is the
  /// last one, and its blocks may be granted.
  void look_up(std::span<const prefix_query> queries, std::vector<prefix_match>& out,
               const std::function<bool(const prefix_match&)>& keep = {});
  /// Begins a lease with the blocks of a match; returns false if they have left the tree meanwhile.
  bool reuse(const lease_reuse& begin);
  /// Inserts a sequence's next full blocks into the prefix tree. If the tree already has a block
  /// with equal tokens, that block stays in the tree and the sequence keeps its own copy.
  void insert(const prefix_insert& computed);

  /// From now on the blocks of the prefix tree have names (block_key: a hash of the prefix), and
  /// evicted and inserted blocks are recorded for take_evicted() and take_inserted().
  void name_blocks(const hash_key& key) { tree_.name_blocks(key); }
  struct named_block {
    std::int32_t block = 0;
    block_identity identity;
  };
  /// Returns the blocks evicted from the prefix tree since the last call, and clears the list. The
  /// blocks are granted ahead now, and no step has written to them yet.
  std::vector<named_block> take_evicted() { return std::exchange(evicted_, {}); }
  /// Returns the blocks inserted since the last call, and clears the list.
  std::vector<std::int32_t> take_inserted() { return std::exchange(inserted_, {}); }
  block_identity identity(std::int32_t block) const { return tree_.identity(block); }
  bool holds(std::int32_t block) const { return tree_.holds(block); }
  /// The name of the last block of a match, or of the scope's root if the match is empty.
  block_key name_of_end(const prefix_match& match, std::uint64_t scope) const {
    return tree_.name(match.blocks.empty() ? prefix_tree::root : match.blocks.back(), scope);
  }

  std::int32_t block_tokens() const { return block_tokens_; }
  std::int64_t total() const { return static_cast<std::int64_t>(blocks_.size()); }
  std::int64_t free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t cached() const { return n_cached_; }
  /// Blocks that were granted and that no sequence has been given yet.
  std::int64_t ahead() const { return n_ahead_; }
  std::int64_t used() const { return total() - free() - cached() - ahead(); }
  /// Free and cached blocks. Those of kept matches are counted too, although they cannot be granted
  /// before the next look_up().
  std::int64_t available() const { return free() + cached(); }
  std::size_t leases() const { return leases_.size(); }
  /// Blocks of a lease; empty if the lease is unknown.
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
    std::size_t n_inserted = 0; ///< number of its first blocks whose tokens are in the tree
    /// The block in the prefix tree for the last tokens that this sequence has inserted: the
    /// sequence's own block, or another block with equal tokens that was inserted before.
    std::int32_t tip = prefix_tree::root;
  };

  static constexpr std::int32_t nobody = -1;
  struct block_state {
    std::int32_t references = 0;
    /// list of cached blocks, in the order of their release
    std::int32_t before = nobody, after = nobody;
  };

  block_state& at(std::int32_t block) { return blocks_[static_cast<std::size_t>(block)]; }
  std::uint64_t& mark_of(std::int32_t block) { return marks_[static_cast<std::size_t>(block)]; }
  void cache(std::int32_t block);
  void uncache(std::int32_t block);
  lease& begin_lease(sequence_id id);
  void evict(std::int32_t block);
  void refer(std::int32_t block);
  void release(std::int32_t block);
  void move_tip(lease& l, std::int32_t to);
  std::vector<std::int32_t> find(const prefix_query& query) const;

  std::int32_t block_tokens_;
  std::vector<block_state> blocks_;                // (n_blocks)
  std::vector<std::int32_t> free_;                 ///< free blocks; the last one is taken next
  std::int32_t oldest_ = nobody, newest_ = nobody; ///< ends of the list of cached blocks
  std::int64_t n_cached_ = 0;
  std::int64_t n_ahead_ = 0;
  // (n_blocks) number of the last look_up() that matched and kept the block
  std::vector<std::uint64_t> marks_;
  std::uint64_t n_look_ups_ = 1;
  prefix_tree tree_;
  id_table<lease> leases_;
  std::vector<named_block> evicted_;   ///< filled only if blocks have names
  std::vector<std::int32_t> inserted_; ///< filled only if blocks have names
};

} // namespace twill::actors
