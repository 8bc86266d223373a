// Input for random tests of KV blocks: a few sequences of few distinct tokens, most of which share
// a beginning, and hash functions that collide.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tests/actors/kv/pool_twin.hpp"
#include "tests/support/operations.hpp"

namespace twill::test {

/// The tokens of one sequence and the scope that it computes in.
struct written_text {
  std::uint32_t bits = 0;
  std::uint64_t scope = 0;

  token_list tokens(std::size_t first, std::size_t last) const {
    token_list all;
    for (std::size_t i = first; i < last; ++i)
      all.push_back(static_cast<std::int32_t>(bits >> (i % 20) & 1U));
    return all;
  }
};

/// The tokens and the cache scope (actors/kv/cache_scope.hpp) of a sequence. One token in four is
/// 1, the others are 0. Scope 0 is that of prompts without tenant and salt. The low 32 bits of one
/// other scope are also 0, so that blocks of the two scopes collide in the hash index of the prefix
/// tree.
inline written_text text_of(const operation& o) {
  const std::uint64_t scope = o.a % 5 == 0 ? 7 : o.a % 5 == 1 ? std::uint64_t{1} << 32 : 0;
  return {o.b & o.c, scope};
}

inline std::uint64_t same_hash(std::int32_t, std::span<const std::int32_t>) {
  return 7;
}
/// A hash function that gives every block one of three values. In most hash tables these are the
/// last three entries, so that colliding blocks wrap around to the beginning of the table.
inline std::uint64_t crowded_hash(std::int32_t parent, std::span<const std::int32_t> tokens) {
  std::int32_t sum = parent;
  for (const std::int32_t token : tokens)
    sum += token;
  return 0xfffffffdULL + static_cast<std::uint64_t>(sum + 1) % 3;
}

inline actors::prefix_tree::hash_function hash_of(std::uint32_t number) {
  return std::array<actors::prefix_tree::hash_function, 3>{actors::prefix_tree::mixed_hash,
                                                           crowded_hash, same_hash}[number % 3];
}

inline constexpr actors::hash_key naming_key{3, 4};

} // namespace twill::test
