// block_pool, which tracks the KV blocks of each sequence, and prefix_tree, which finds cached
// blocks by their tokens. The tests use no actors; they check with which cached blocks a lease (the
// blocks of one sequence) begins, and which blocks are evicted.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "actors/kv/block_pool.hpp"
#include "actors/kv/cache_scope.hpp"
#include "actors/kv/prefix_tree.hpp"
#include "tests/actors/kv/lease_blocks.hpp"
#include "tests/catch.hpp"

using twill::actors::block_pool;
using twill::actors::prefix_match;
using twill::actors::prefix_query;
using twill::actors::prefix_tree;
using twill::actors::sequence_id;
using twill::test::grow;
using ids = std::vector<std::int32_t>;

namespace {

std::uint64_t same_hash(std::int32_t, std::span<const std::int32_t>) {
  return 7;
}

prefix_match match_of(block_pool& pool, const ids& tokens) {
  const prefix_query query{99, tokens};
  std::vector<prefix_match> out;
  pool.look_up({&query, 1}, out);
  return out.at(0);
}

/// Leaves cached blocks: inserts a lease of new blocks over all of `tokens`, and drops it.
ids leave_behind(block_pool& pool, sequence_id id, const ids& tokens, std::int32_t width) {
  ids blocks;
  REQUIRE(grow(pool, id, static_cast<std::int32_t>(tokens.size()) / width, blocks));
  pool.insert({id, tokens});
  pool.drop(id);
  return blocks;
}

/// Random leases over few token values, compared with the tokens that each block was filled with.
class pool_model {
public:
  pool_model(std::uint64_t seed, std::int32_t n_blocks, std::int32_t width,
             prefix_tree::hash_function hash)
      : rng_(seed), width_(width), pool_(n_blocks, width, hash) {}

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng_); }

  void begin() {
    held l;
    const int n = pick(1, 6);
    for (int i = 0; i < n * width_; ++i)
      l.tokens.push_back(pick(0, 9) < 8 ? 0 : pick(1, 2));
    const sequence_id id = next_++;
    const prefix_match match = match_of(pool_, l.tokens);
    for (std::size_t i = 0; i < match.blocks.size(); ++i)
      REQUIRE(contents_.at(match.blocks[i]) == prefix(l.tokens, i + 1));
    const int lacking = n - static_cast<int>(match.blocks.size());
    if (lacking + match.n_evictable > pool_.available()) return;
    if (!match.blocks.empty()) REQUIRE(pool_.reuse({id, match.blocks}));
    l.blocks = match.blocks;
    l.n_inserted = l.blocks.size();
    hits += l.blocks.size();
    ids fresh;
    REQUIRE(grow(pool_, id, lacking, fresh));
    for (std::int32_t b : fresh) {
      for (const auto& [other, o] : leases_)
        REQUIRE(std::count(o.blocks.begin(), o.blocks.end(), b) == 0);
      l.blocks.push_back(b);
      contents_[b] = prefix(l.tokens, l.blocks.size());
    }
    leases_[id] = l;
  }
  void fork() {
    if (leases_.empty()) return;
    const auto from = any();
    const int n = pick(1, static_cast<int>(from->second.blocks.size()));
    const sequence_id id = next_++;
    REQUIRE(pool_.fork(id, from->first, n));
    held l;
    l.blocks.assign(from->second.blocks.begin(), from->second.blocks.begin() + n);
    l.tokens = prefix(from->second.tokens, static_cast<std::size_t>(n));
    leases_[id] = l;
  }
  void insert() {
    if (leases_.empty()) return;
    auto& [id, l] = *any();
    const auto to = static_cast<std::size_t>(
        pick(static_cast<int>(l.n_inserted), static_cast<int>(l.blocks.size())));
    const auto w = static_cast<std::ptrdiff_t>(width_);
    pool_.insert({id,
                  {l.tokens.begin() + static_cast<std::ptrdiff_t>(l.n_inserted) * w,
                   l.tokens.begin() + static_cast<std::ptrdiff_t>(to) * w}});
    l.n_inserted = to;
  }
  void drop() {
    if (leases_.empty()) return;
    const auto l = any();
    pool_.drop(l->first);
    leases_.erase(l);
  }
  void check() {
    REQUIRE(pool_.used() + pool_.ahead() + pool_.cached() + pool_.free() == pool_.total());
    std::int64_t cached = 0;
    for (std::int32_t b = 0; b < pool_.total(); ++b)
      cached += pool_.is_cached(b) ? 1 : 0;
    REQUIRE(cached == pool_.cached());
    for (const auto& [id, l] : leases_) {
      for (std::size_t i = 0; i < l.blocks.size(); ++i) {
        REQUIRE(pool_.references(l.blocks[i]) > 0);
        REQUIRE(contents_.at(l.blocks[i]) == prefix(l.tokens, i + 1));
      }
    }
    if (leases_.empty()) REQUIRE(pool_.used() == 0);
  }
  /// All blocks that are not used can be granted together.
  void fill() {
    ids all;
    const auto n = static_cast<std::int32_t>(pool_.available());
    REQUIRE_FALSE(grow(pool_, next_, n + 1, all));
    REQUIRE(grow(pool_, next_, n, all));
    REQUIRE(pool_.cached() == 0);
    pool_.drop(next_++);
  }

  std::size_t hits = 0;

private:
  struct held {
    ids tokens, blocks;
    std::size_t n_inserted = 0;
  };
  ids prefix(const ids& tokens, std::size_t n_blocks) const {
    return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n_blocks) * width_};
  }
  std::map<sequence_id, held>::iterator any() {
    return std::next(leases_.begin(), pick(0, static_cast<int>(leases_.size()) - 1));
  }

  std::mt19937_64 rng_;
  std::int32_t width_;
  block_pool pool_;
  sequence_id next_ = 1;
  std::map<sequence_id, held> leases_;
  std::map<std::int32_t, ids> contents_; ///< the whole prefix that a block was computed for
};

} // namespace

TEST_CASE("a hash that is always the same shares nothing that differs", "[actors][policy]") {
  prefix_tree tree(8, 2, same_hash);
  tree.insert(prefix_tree::root, ids{1, 2}, 3);
  tree.insert(3, ids{1, 2}, 4);
  tree.insert(prefix_tree::root, ids{2, 1}, 5);
  CHECK(tree.child(prefix_tree::root, ids{1, 2}) == 3);
  CHECK(tree.child(3, ids{1, 2}) == 4);
  CHECK(tree.child(prefix_tree::root, ids{2, 1}) == 5);
  CHECK(tree.child(5, ids{1, 2}) == prefix_tree::none);
  CHECK(tree.child(4, ids{1, 2}) == prefix_tree::none);
  CHECK(tree.child(prefix_tree::root, ids{1, 3}) == prefix_tree::none);
  tree.erase(4);
  CHECK(tree.child(3, ids{1, 2}) == prefix_tree::none);
  CHECK(tree.size() == 2);
}

TEST_CASE("a prefix is found in its own scope alone", "[actors][policy]") {
  for (const auto hash : {prefix_tree::mixed_hash, same_hash}) {
    block_pool pool(12, 2, hash);
    const ids prompt{1, 2, 3, 4};
    const auto found = [&](std::uint64_t scope) {
      const prefix_query query{99, prompt, scope};
      std::vector<prefix_match> out;
      pool.look_up({&query, 1}, out);
      return out.at(0).blocks;
    };
    std::map<std::uint64_t, ids> of_scope;
    for (const std::uint64_t scope : {0u, 7u, 8u}) {
      CHECK(found(scope).empty());
      REQUIRE(grow(pool, scope + 1, 2, of_scope[scope]));
      pool.insert({scope + 1, prompt, scope});
      pool.drop(scope + 1);
    }
    for (const std::uint64_t scope : {0u, 7u, 8u})
      CHECK(found(scope) == of_scope[scope]);
    CHECK(pool.cached() == 6);
    // Cached blocks of every scope can be evicted.
    ids all;
    REQUIRE(grow(pool, 50, 12, all));
    CHECK(found(7).empty());
  }
}

TEST_CASE("scopes differ by tenant and by salt, and are hard to hit", "[actors][policy]") {
  using twill::actors::cache_scope;
  CHECK(cache_scope("", "") == 0);
  std::set<std::uint64_t> scopes{0};
  for (const char* tenant : {"", "a", "b", "ab", "a-long-name-of-more-than-eight-bytes"})
    for (const char* salt : {"", "a", "b", "ab", "a-long-name-of-more-than-eight-bytes"})
      scopes.insert(cache_scope(tenant, salt));
  CHECK(scopes.size() == 25);
  CHECK(cache_scope("a", "x") == cache_scope("a", "x"));
}

TEST_CASE("the least recently used prefix is evicted first, its end before its beginning",
          "[actors][policy]") {
  block_pool pool(6, 2);
  const ids a{1, 2, 3, 4, 5, 6}, b{1, 2, 7, 8}, c{9, 9};
  const ids blocks_a = leave_behind(pool, 1, a, 2);
  leave_behind(pool, 2, b, 2); // a has the same first block, so b's copy is freed
  leave_behind(pool, 3, c, 2);
  CHECK(pool.cached() == 5);
  CHECK(pool.free() == 1);
  const auto match = match_of(pool, a);
  CHECK(match.blocks == blocks_a);
  CHECK(match.n_evictable == 3);
  REQUIRE(pool.reuse({4, match.blocks})); // a is the most recently used now
  CHECK(pool.used() == 3);
  pool.drop(4);
  ids taken;
  REQUIRE(grow(pool, 5, 2, taken)); // the free one, then the end of b
  CHECK(match_of(pool, b).blocks.size() == 1);
  CHECK(match_of(pool, c).blocks.size() == 1);
  REQUIRE(grow(pool, 5, 2, taken)); // c, then the end of a
  CHECK(match_of(pool, c).blocks.empty());
  CHECK(match_of(pool, a).blocks.size() == 2);
  REQUIRE(grow(pool, 5, 2, taken));
  CHECK(match_of(pool, a).blocks.empty());
  CHECK_FALSE(grow(pool, 5, 1, taken));
  pool.drop(5);
  CHECK(pool.free() == 6);
}

TEST_CASE("what is used is not evicted, nor is what leads to it", "[actors][policy]") {
  block_pool pool(4, 1);
  ids first, second, more;
  REQUIRE(grow(pool, 1, 2, first));
  REQUIRE(grow(pool, 2, 2, second));
  pool.insert({1, {5, 6}});
  pool.insert({2, {5, 7}}); // a copy of 5, and 7 behind the first copy
  pool.drop(1);
  CHECK(pool.used() == 3); // two blocks with 5, and one with 7
  CHECK(pool.cached() == 1);
  REQUIRE(grow(pool, 3, 1, more));
  CHECK_FALSE(grow(pool, 3, 1, more));
  CHECK(match_of(pool, {5, 7}).blocks == ids{first[0], second[1]});
  pool.drop(2);
  CHECK(pool.cached() == 2);
  CHECK(pool.free() == 1);
}

TEST_CASE("granted blocks belong to nobody until they are given", "[actors][policy]") {
  block_pool pool(5, 2);
  ids granted;
  pool.grant(3, granted);
  REQUIRE(granted.size() == 3);
  CHECK(pool.ahead() == 3);
  CHECK(pool.used() == 0);
  CHECK(pool.available() == 2);
  CHECK(pool.leases() == 0);
  pool.give(1, {&granted[2], 1});
  pool.give(2, {granted.data(), 1});
  CHECK(pool.blocks(1) == ids{granted[2]});
  CHECK(pool.blocks(2) == ids{granted[0]});
  CHECK(pool.ahead() == 1);
  CHECK(pool.used() == 2);
  pool.drop(1);
  CHECK(pool.free() == 3);
  pool.grant(9, granted); // fewer than were asked for
  CHECK(granted.size() == 6);
  CHECK(pool.available() == 0);
  pool.grant(-1, granted);
  CHECK(granted.size() == 6);
  pool.reset();
  CHECK(pool.ahead() == 0);
  CHECK(pool.free() == 5);
}

TEST_CASE("matched blocks are not granted before the next look-up", "[actors][policy]") {
  block_pool pool(4, 2);
  const ids a{1, 2, 3, 4}, b{5, 6, 7, 8};
  const ids blocks_a = leave_behind(pool, 1, a, 2);
  const ids blocks_b = leave_behind(pool, 2, b, 2);
  CHECK(match_of(pool, a).blocks == blocks_a); // before this match, a was used less recently than b
  ids granted;
  pool.grant(3, granted);
  CHECK(granted == ids{blocks_b[1], blocks_b[0]});
  pool.give(3, granted);
  pool.drop(3);
  granted.clear();
  pool.grant(4, granted);
  CHECK(granted.size() == 2); // the free blocks only
  REQUIRE(pool.reuse({4, blocks_a}));
  pool.drop(4);
  pool.grant(1, granted);
  CHECK(granted.size() == 2); // a is cached again, but its match keeps it
  CHECK(match_of(pool, b).blocks.empty());
  pool.grant(1, granted);
  CHECK(granted.back() == blocks_a[1]);
}

TEST_CASE("a match that was used is not granted when it is released", "[actors][policy]") {
  block_pool pool(2, 1);
  const ids tokens{1, 2};
  const ids blocks = leave_behind(pool, 1, tokens, 1);
  REQUIRE(pool.reuse({2, {blocks[0]}}));
  CHECK(match_of(pool, tokens).n_evictable == 1);
  pool.drop(2); // the match still protects the first block
  ids granted;
  pool.grant(1, granted);
  CHECK(granted.empty());
  CHECK(match_of(pool, tokens).blocks == blocks);
}

TEST_CASE("random leases, forks and entries keep the pool's invariants", "[actors][policy]") {
  std::size_t hits = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 shape(seed);
    const auto width = static_cast<std::int32_t>(1 + shape() % 3);
    pool_model m(seed, static_cast<std::int32_t>(1 + shape() % 30), width,
                 seed % 3 == 0 ? same_hash : prefix_tree::mixed_hash);
    for (int op = 0; op < 200; ++op) {
      const int drawn = m.pick(0, 19);
      drawn < 7 ? m.begin() : drawn < 8 ? m.fork() : drawn < 14 ? m.insert() : m.drop();
      if (m.pick(0, 50) == 0) m.fill();
      m.check();
    }
    hits += m.hits;
  }
  CHECK(hits > 5000);
}
