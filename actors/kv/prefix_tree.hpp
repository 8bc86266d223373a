// prefix_tree: which KV block holds which tokens after which other block. A node is a full block;
// its path from the root is the prefix that was computed. Below the root prefixes are divided into
// scopes, which never share a block. The tree holds token ids, no keys or values.
//
// Pure, one thread at a time (owned by block_pool). A child is found by hash and then compared
// token by token, so that a collision shares nothing. Invariant: a node's parent is in the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "actors/kv/spilled_block.hpp"

namespace twill::actors {

class prefix_tree {
public:
  static constexpr std::int32_t root = -1;
  static constexpr std::int32_t none = -2;
  using hash_function = std::uint64_t (*)(std::int32_t parent,
                                          std::span<const std::int32_t> tokens);
  static std::uint64_t mixed_hash(std::int32_t parent, std::span<const std::int32_t> tokens);

  explicit prefix_tree(std::int32_t n_blocks, hash_function hash = mixed_hash)
      : nodes_(static_cast<std::size_t>(n_blocks)), hash_(hash) {}

  /// The block that holds `tokens` after `parent` (a block of the tree, or root); else none.
  /// `scope` is that of the prefix, for a block that begins one.
  std::int32_t child(std::int32_t parent, std::span<const std::int32_t> tokens,
                     std::uint64_t scope = 0) const;
  /// Inserts a block that is not in the tree; `parent` must have no child with these tokens.
  void insert(std::int32_t parent, std::span<const std::int32_t> tokens, std::int32_t block,
              std::uint64_t scope = 0);
  /// Removes a block that has no children.
  void erase(std::int32_t block);
  /// Forgets everything; the blocks that may come are [0, n_blocks).
  void clear(std::int32_t n_blocks);

  bool holds(std::int32_t block) const { return at(block).held; }
  /// The parent of a block of the tree; root for a block that begins a prefix.
  std::int32_t parent(std::int32_t block) const { return at(block).parent; }
  std::size_t size() const { return index_.size(); }

  /// From now on inserted blocks have names, under which tiers off the device know them.
  void name_blocks(const hash_key& key) { names_ = key; }
  bool has_names() const { return names_.has_value(); }
  /// The name of a block of the tree; that of the scope for root.
  block_key name(std::int32_t block, std::uint64_t scope) const {
    return block == root ? root_key(scope) : at(block).name;
  }
  block_identity identity(std::int32_t block) const {
    const node& n = at(block);
    return {n.name, name(n.parent, n.scope), n.tokens};
  }

private:
  struct node {
    std::vector<std::int32_t> tokens; // (block_tokens)
    std::uint64_t scope = 0;
    std::int32_t parent = root;
    std::int32_t children = 0;
    bool held = false;
    block_key name;
  };
  std::uint64_t place(std::int32_t parent, std::span<const std::int32_t> tokens,
                      std::uint64_t scope) const {
    return hash_(parent, tokens) ^ (parent == root ? scope : 0);
  }
  const node& at(std::int32_t block) const { return nodes_[static_cast<std::size_t>(block)]; }
  node& at(std::int32_t block) { return nodes_[static_cast<std::size_t>(block)]; }

  std::vector<node> nodes_; // (n_blocks)
  std::unordered_multimap<std::uint64_t, std::int32_t> index_;
  hash_function hash_;
  std::optional<hash_key> names_;
};

} // namespace twill::actors
