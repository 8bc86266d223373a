// block_key: the name of a KV block outside the device. The name depends on all that the block's
// content depends on: its cache scope (which says which requests share prefixes, see
// cache_scope.hpp) and every token up to the block's end. Equal prefixes have equal names, in this
// process and, with the same hash_key, in later ones.
//
// The functions are pure. A name is 128 bits of a keyed hash, chained from block to block. The
// stores in host memory and on disk do not rely on a name alone: they also compare a block's own
// tokens and its parent's name.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "actors/kv/keyed_hash.hpp"

namespace twill::actors {

struct block_key {
  std::uint64_t first = 0, second = 0;
  auto operator<=>(const block_key&) const = default;
};

struct block_key_hash {
  std::size_t operator()(const block_key& k) const { return static_cast<std::size_t>(k.first); }
};

/// The parent of the first block of every prefix in a scope.
constexpr block_key root_key(std::uint64_t scope) {
  return {scope, 0};
}

/// The name of the block that holds `tokens` after the block `parent`.
inline block_key key_after(const hash_key& key, const block_key& parent,
                           std::span<const std::int32_t> tokens) {
  keyed_hash first(key), second({key.second, ~key.first});
  const auto add = [&](std::uint64_t word) {
    first.add(word);
    second.add(word);
  };
  add(parent.first);
  add(parent.second);
  for (std::size_t i = 0; i < tokens.size(); i += 2) {
    const std::uint64_t next =
        i + 1 < tokens.size() ? static_cast<std::uint32_t>(tokens[i + 1]) : 0xffffffffU;
    add(static_cast<std::uint32_t>(tokens[i]) | next << 32);
  }
  return {first.finish(), second.finish()};
}

} // namespace twill::actors
