#include "actors/kv/prefix_tree.hpp"

#include <algorithm>

#include "config/base/assert.hpp"

namespace twill::actors {

std::uint64_t prefix_tree::mixed_hash(std::int32_t parent, std::span<const std::int32_t> tokens) {
  // FNV-1a over whole ids, then a finalizer that spreads the last ids over all bits.
  std::uint64_t h = 0xcbf29ce484222325ULL;
  const auto mix = [&h](std::int32_t x) {
    h = (h ^ static_cast<std::uint32_t>(x)) * 0x100000001b3ULL;
    h ^= h >> 32;
  };
  mix(parent);
  for (std::int32_t token : tokens)
    mix(token);
  h *= 0xff51afd7ed558ccdULL;
  return h ^ (h >> 33);
}

std::int32_t prefix_tree::child(std::int32_t parent, std::span<const std::int32_t> tokens,
                                std::uint64_t scope) const {
  const std::int32_t found =
      index_.find(block_index::tag_of(place(parent, tokens, scope)), [&](std::int32_t block) {
        return at(block).parent == parent &&
               (parent != root || scopes_[static_cast<std::size_t>(block)] == scope) &&
               std::equal(tokens.begin(), tokens.end(), tokens_of(block).begin());
      });
  return found == block_index::none ? none : found;
}

void prefix_tree::insert(std::int32_t parent, std::span<const std::int32_t> tokens,
                         std::int32_t block, std::uint64_t scope) {
  node& n = at(block);
  TWILL_ASSERT(!holds(block), "a block has one place in the prefix tree");
  TWILL_ASSERT(parent == root || holds(parent), "a prefix begins at the root");
  TWILL_ASSERT(tokens.size() == width_, "the prefix tree holds full blocks");
  std::copy(tokens.begin(), tokens.end(), tokens_of(block).begin());
  n = {block_index::tag_of(place(parent, tokens, scope)), parent, 0};
  scopes_[static_cast<std::size_t>(block)] = scope;
  if (naming_)
    names_[static_cast<std::size_t>(block)] = key_after(*naming_, name(parent, scope), tokens);
  if (parent != root) at(parent).children += 1;
  index_.insert(n.tag, block);
}

void prefix_tree::erase(std::int32_t block) {
  node& n = at(block);
  TWILL_ASSERT(n.children == 0, "leaves leave the prefix tree first");
  index_.erase(n.tag, block);
  if (n.parent != root) at(n.parent).children -= 1;
  n = node{};
}

void prefix_tree::clear(std::int32_t n_blocks) {
  const auto n = static_cast<std::size_t>(n_blocks);
  index_.clear(n);
  // memory is not touched before it is used
  if (nodes_.size() != n) tokens_.reset(new std::int32_t[n * width_]);
  nodes_.assign(n, node{});
  scopes_.assign(n, 0);
  if (naming_) names_.resize(n);
}

} // namespace twill::actors
