// prefix_tree: a tree of KV blocks by their tokens. A node is a full block, and its path from the
// root is the prefix for which it was computed. Each prefix belongs to a scope (see
// cache_scope.hpp); prefixes of different scopes never share a block. The tree holds token ids but
// no keys or values.
//
// An object has no side effects outside itself; one thread at a time may use it (owned by
// block_pool). A child is found by hash and then compared token by token, so a hash collision never
// leads to a shared block. All data lies in arrays indexed by block id, and the index is one
// open-addressing table, so a change allocates nothing. Invariant: a node's parent is in the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "actors/kv/block_index.hpp"
#include "actors/kv/spilled_block.hpp"

namespace twill::actors {

class prefix_tree {
public:
  static constexpr std::int32_t root = -1;
  static constexpr std::int32_t none = -2;
  using hash_function = std::uint64_t (*)(std::int32_t parent,
                                          std::span<const std::int32_t> tokens);
  static std::uint64_t mixed_hash(std::int32_t parent, std::span<const std::int32_t> tokens);

  prefix_tree(std::int32_t n_blocks, std::int32_t block_tokens, hash_function hash = mixed_hash)
      : width_(static_cast<std::size_t>(block_tokens)), hash_(hash) {
    clear(n_blocks);
  }

  /// Returns the block that holds `tokens` after `parent` (a block of the tree, or root), or none.
  /// `scope` is the cache scope of the prefix (see cache_scope.hpp); it is used only if `parent` is
  /// the root.
  std::int32_t child(std::int32_t parent, std::span<const std::int32_t> tokens,
                     std::uint64_t scope = 0) const;
  /// Inserts a block that is not in the tree; `parent` must have no child with these tokens.
  void insert(std::int32_t parent, std::span<const std::int32_t> tokens, std::int32_t block,
              std::uint64_t scope = 0);
  /// Removes a block that has no children.
  void erase(std::int32_t block);
  /// Removes everything; after that, blocks in [0, n_blocks) may be inserted.
  void clear(std::int32_t n_blocks);

  bool holds(std::int32_t block) const { return at(block).children >= 0; }
  /// The parent of a block of the tree; root for a block that begins a prefix.
  std::int32_t parent(std::int32_t block) const { return at(block).parent; }
  std::size_t size() const { return index_.size(); }

  /// From now on inserted blocks have names, which identify them in tiers off the device.
  void name_blocks(const hash_key& key) {
    naming_ = key;
    names_.resize(nodes_.size());
  }
  bool has_names() const { return naming_.has_value(); }
  /// The name of a block of the tree; for root, the name of the scope's root.
  block_key name(std::int32_t block, std::uint64_t scope) const {
    return block == root ? root_key(scope) : names_[static_cast<std::size_t>(block)];
  }
  block_identity identity(std::int32_t block) const {
    const auto own = tokens_of(block);
    const std::uint64_t scope = scopes_[static_cast<std::size_t>(block)];
    return {name(block, scope), name(at(block).parent, scope), {own.begin(), own.end()}};
  }

private:
  struct node {
    std::uint32_t tag = 0; ///< tag of the block in the index
    std::int32_t parent = root;
    std::int32_t children = -1; ///< -1: the tree does not hold the block
  };
  std::uint64_t place(std::int32_t parent, std::span<const std::int32_t> tokens,
                      std::uint64_t scope) const {
    return hash_(parent, tokens) ^ (parent == root ? scope : 0);
  }
  const node& at(std::int32_t block) const { return nodes_[static_cast<std::size_t>(block)]; }
  node& at(std::int32_t block) { return nodes_[static_cast<std::size_t>(block)]; }
  std::span<std::int32_t> tokens_of(std::int32_t block) const {
    return {tokens_.get() + static_cast<std::size_t>(block) * width_, width_};
  }

  std::size_t width_;                      ///< tokens of a block
  std::vector<node> nodes_;                // (n_blocks)
  std::vector<std::uint64_t> scopes_;      // (n_blocks)
  std::unique_ptr<std::int32_t[]> tokens_; // (n_blocks, width_), of blocks that are held
  std::vector<block_key> names_;           // (n_blocks), where blocks have names
  block_index index_;
  hash_function hash_;
  std::optional<hash_key> naming_;
};

} // namespace twill::actors
