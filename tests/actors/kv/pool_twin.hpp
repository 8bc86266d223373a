// pool_twin: a plain reference for block_pool. Its prefix tree is a map from a whole prefix to the
// block that holds its end, its cached blocks are a list in the order of their release, and it
// counts references anew for every answer. It is slow, has no hash, and shares no code with the
// pool but key_after(), which computes the keys of blocks.
//
// It can be copied, so that a test may try an operation on a copy first.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/kv/block_pool.hpp"

namespace twill::test {

using token_list = std::vector<std::int32_t>;
using block_list = std::vector<std::int32_t>;

/// All that a block depends on: its scope and every token up to its end. No tokens: the root.
struct whole_prefix {
  std::uint64_t scope = 0;
  token_list tokens;
  auto operator<=>(const whole_prefix&) const = default;
};

class pool_twin {
public:
  struct lease {
    block_list blocks;
    std::size_t n_inserted = 0;
    whole_prefix tip; ///< the part of the prefix that is in the tree
  };

  pool_twin(std::int32_t n_blocks, std::int32_t width, std::optional<actors::hash_key> naming)
      : width_(static_cast<std::size_t>(width)), naming_(naming) {
    reset(n_blocks);
  }

  void grant(std::int64_t n, block_list& out);
  void give(actors::sequence_id id, const block_list& granted);
  bool fork(actors::sequence_id id, actors::sequence_id from, std::int32_t n);
  void drop(actors::sequence_id id);
  void reset(std::int32_t n_blocks);
  std::vector<actors::prefix_match> look_up(const std::vector<actors::prefix_query>& queries);
  bool reuse(const actors::lease_reuse& begin);
  void insert(const actors::prefix_insert& computed);
  std::vector<actors::block_pool::named_block> take_evicted() {
    return std::exchange(evicted_, {});
  }
  block_list take_inserted() { return std::exchange(inserted_, {}); }

  std::int32_t references(std::int32_t block) const;
  bool holds(std::int32_t block) const { return prefix_of(block) != nullptr; }
  bool is_cached(std::int32_t block) const { return holds(block) && references(block) == 0; }
  /// The block was granted, and was not given to a lease yet.
  bool is_ahead(std::int32_t block) const { return ahead_.contains(block); }
  bool is_named() const { return naming_.has_value(); }
  actors::block_identity identity(std::int32_t block) const;
  actors::block_key name(const whole_prefix& of) const;
  /// The prefix under which the tree holds a block; null if the tree does not hold it.
  const whole_prefix* prefix_of(std::int32_t block) const;
  /// Where in the tree a match ends.
  whole_prefix end_of(const actors::prefix_match& match, std::uint64_t scope) const;

  std::int32_t n_blocks() const { return n_blocks_; }
  std::size_t width() const { return width_; }
  std::int64_t free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t cached() const { return static_cast<std::int64_t>(cached_.size()); }
  std::int64_t ahead() const { return static_cast<std::int64_t>(ahead_.size()); }
  std::int64_t used() const;
  const std::map<actors::sequence_id, lease>& leases() const { return leases_; }
  std::size_t tree_size() const { return tree_.size(); }

private:
  void evict(std::int32_t block);
  void settle();

  std::size_t width_;
  std::optional<actors::hash_key> naming_;
  std::int32_t n_blocks_ = 0;
  std::map<whole_prefix, std::int32_t> tree_;
  std::map<actors::sequence_id, lease> leases_;
  block_list cached_;              ///< the block that was released first is evicted first
  block_list free_;                ///< the last is taken next
  std::set<std::int32_t> ahead_;   ///< blocks that were granted and not given to a lease yet
  std::set<whole_prefix> matched_; ///< blocks that the last look_up() found; they stay in the tree
  std::vector<actors::block_pool::named_block> evicted_;
  block_list inserted_;
};

/// Throws `broken` if the pool and its reference differ in anything that can be queried without
/// changing them.
void demand_equal_pools(const actors::block_pool& pool, const pool_twin& twin);
void demand_equal_identities(const actors::block_identity& is,
                             const actors::block_identity& expected, const std::string& what);
void demand_equal_matches(const std::vector<actors::prefix_match>& are,
                          const std::vector<actors::prefix_match>& expected);
/// Writes blocks as in "1 4 2".
std::string written(const block_list& blocks);

} // namespace twill::test
