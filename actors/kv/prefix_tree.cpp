#include "actors/kv/prefix_tree.hpp"

#include <algorithm>

#include "config/base/assert.hpp"

namespace twill::actors {

std::uint64_t prefix_tree::mixed_hash(std::int32_t parent, std::span<const std::int32_t> tokens) {
  // FNV-1a over whole ids, then a finalizer that spreads the last ones over all bits.
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
  const auto [first, last] = index_.equal_range(place(parent, tokens, scope));
  for (auto i = first; i != last; ++i) {
    const node& n = at(i->second);
    if (n.parent == parent && (parent != root || n.scope == scope) &&
        std::equal(tokens.begin(), tokens.end(), n.tokens.begin(), n.tokens.end()))
      return i->second;
  }
  return none;
}

void prefix_tree::insert(std::int32_t parent, std::span<const std::int32_t> tokens,
                         std::int32_t block, std::uint64_t scope) {
  node& n = at(block);
  TWILL_ASSERT(!n.held, "a block has one place in the prefix tree");
  TWILL_ASSERT(parent == root || at(parent).held, "a prefix begins at the root");
  n.tokens.assign(tokens.begin(), tokens.end());
  n.parent = parent;
  n.scope = scope;
  n.children = 0;
  n.held = true;
  if (names_) n.name = key_after(*names_, name(parent, scope), tokens);
  if (parent != root) at(parent).children += 1;
  index_.emplace(place(parent, tokens, scope), block);
}

void prefix_tree::erase(std::int32_t block) {
  node& n = at(block);
  TWILL_ASSERT(n.held && n.children == 0, "leaves leave the prefix tree first");
  auto i = index_.find(place(n.parent, n.tokens, n.scope));
  while (i->second != block)
    ++i;
  index_.erase(i);
  if (n.parent != root) at(n.parent).children -= 1;
  n = node{};
}

void prefix_tree::clear(std::int32_t n_blocks) {
  index_.clear();
  nodes_.assign(static_cast<std::size_t>(n_blocks), node{});
}

} // namespace twill::actors
