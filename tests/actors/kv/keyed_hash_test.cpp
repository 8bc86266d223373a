// keyed_hash is SipHash-2-4 as its authors define it. Two kinds of values are computed with it: a
// cache_scope says which prompts may share cached blocks, and a block_key is the name of a KV
// block. Two values of one kind are equal exactly when all their inputs are equal.
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "actors/kv/block_key.hpp"
#include "actors/kv/cache_scope.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;

/// SipHash-2-4 of bytes, written after the paper (Aumasson and Bernstein, 2012).
std::uint64_t siphash(const hash_key& key, std::string text) {
  std::uint64_t v0 = 0x736f6d6570736575 ^ key.first, v1 = 0x646f72616e646f6d ^ key.second;
  std::uint64_t v2 = 0x6c7967656e657261 ^ key.first, v3 = 0x7465646279746573 ^ key.second;
  const auto turn = [](std::uint64_t x, int by) { return x << by | x >> (64 - by); };
  const auto round = [&] {
    v0 += v1, v1 = turn(v1, 13), v1 ^= v0, v0 = turn(v0, 32);
    v2 += v3, v3 = turn(v3, 16), v3 ^= v2;
    v0 += v3, v3 = turn(v3, 21), v3 ^= v0;
    v2 += v1, v1 = turn(v1, 17), v1 ^= v2, v2 = turn(v2, 32);
  };
  const auto length = static_cast<char>(text.size());
  while (text.size() % 8 != 7)
    text += '\0';
  text += length;
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = 8; i-- > 0;)
      word = word << 8 | static_cast<unsigned char>(text[at + i]);
    v3 ^= word;
    round(), round();
    v0 ^= word;
  }
  v2 ^= 0xff;
  for (int i = 0; i < 4; ++i)
    round();
  return v0 ^ v1 ^ v2 ^ v3;
}

constexpr hash_key paper_key{0x0706050403020100, 0x0f0e0d0c0b0a0908};

/// Replaces the process's key of scopes while the object exists.
struct other_scope_key {
  explicit other_scope_key(const hash_key& key) { use_scope_key(key); }
  ~other_scope_key() { use_scope_key(before); }
  hash_key before = scope_key();
};

std::string text_of(std::uint32_t length, std::uint32_t number) {
  std::string text;
  for (std::uint32_t i = 0; i < length; ++i)
    text += static_cast<char>(1 + (number >> i % 13) % 2 * 200); // adds no null character
  return text;
}

} // namespace

TEST_CASE("the twin of keyed_hash is SipHash-2-4", "[actors][policy]") {
  CHECK(siphash(paper_key, "") == 0x726fdb47dd0e0e31);
  std::string text;
  for (char c = 0; c < 15; ++c)
    text += c;
  CHECK(siphash(paper_key, text) == 0xa129ca6149be45e5); // the test vector of the paper
}

TEST_CASE("a scope is the keyed hash of tenant and salt", "[actors][policy]") {
  std::map<std::uint64_t, std::pair<std::string, std::string>> found;
  CHECK(first_failure({2'000, 50'000, 10}, [&](const operations& sequence) {
          for (const operation& o : sequence) {
            const hash_key key = o.kind % 2 == 0 ? paper_key : hash_key{o.kind, 5};
            const other_scope_key other(key);
            const std::string tenant = text_of(o.a % 20, o.b), salt = text_of(o.a / 20 % 20, o.c);
            const std::uint64_t scope = cache_scope(tenant, salt);
            if (tenant.empty() && salt.empty()) {
              demand_equal(scope, std::uint64_t{0}, "the scope of no tenant and no salt");
              continue;
            }
            demand_equal(scope, siphash(key, tenant + '\0' + salt), "a scope");
            if (key.second == 5) continue;
            const auto at = found.emplace(scope, std::pair(tenant, salt)).first;
            demand(at->second == std::pair(tenant, salt), "two tenants share a scope");
          }
        }) == "");
}

TEST_CASE("blocks have equal names where all that they depend on is equal", "[actors][policy]") {
  // Few values, so that two blocks of a sequence often differ in one property alone.
  using all_of_it = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                               std::vector<std::int32_t>>;
  CHECK(first_failure({400, 20'000, 300}, [&](const operations& sequence) {
          std::map<block_key, all_of_it> named;
          std::map<all_of_it, block_key> names;
          std::set<std::uint64_t> firsts, seconds;
          for (const operation& o : sequence) {
            const hash_key key{o.kind % 2, o.kind / 2 % 2};
            const block_key parent{o.a % 2, o.a / 2 % 2};
            std::vector<std::int32_t> tokens;
            for (std::uint32_t i = 0; i < 4 + o.c % 2; ++i)
              tokens.push_back(static_cast<std::int32_t>(o.b >> i & 1) << 16 * (o.c / 2 % 2));
            const all_of_it all{key.first, key.second, parent.first, parent.second, tokens};
            const block_key name = key_after(key, parent, tokens);
            demand(named.emplace(name, all).first->second == all, "two blocks have one name");
            demand(names.emplace(all, name).first->second == name, "a block has two names");
          }
          // Compare each half alone: a collision of whole names is too unlikely to be met.
          for (const auto& [name, all] : named) {
            demand(firsts.insert(name.first).second, "first halves of two names are equal");
            demand(seconds.insert(name.second).second, "second halves of two names are equal");
            demand(name.first != name.second, "the halves of a name are equal");
          }
        }) == "");
  CHECK(root_key(7) == block_key{7, 0});
}
