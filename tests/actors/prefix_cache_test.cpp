// Cached prefixes: the tree and the pool by themselves, then through the port over a runner whose
// text depends on every position of the KV that a sequence is given.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "actors/policy/block_pool.hpp"
#include "actors/policy/prefix_tree.hpp"
#include "tests/actors/scripted_runner.hpp"
#include "tests/catch.hpp"

using namespace scripted;
using actors::block_pool;
using actors::prefix_match;
using actors::prefix_query;
using actors::prefix_tree;
using actors::sequence_id;
using ids = std::vector<std::int32_t>;

namespace {

std::uint64_t same_hash(std::int32_t, std::span<const std::int32_t>) {
  return 7;
}

prefix_match match_of(const block_pool& pool, const ids& tokens) {
  const prefix_query query{99, tokens};
  std::vector<prefix_match> out;
  pool.look_up({&query, 1}, out);
  return out.at(0);
}

/// A lease of new blocks over all of `tokens`, entered and ended.
ids leave_behind(block_pool& pool, sequence_id id, const ids& tokens, std::int32_t width) {
  ids blocks;
  REQUIRE(pool.grow(id, static_cast<std::int32_t>(tokens.size()) / width, blocks));
  pool.enter({id, tokens});
  pool.drop(id);
  return blocks;
}

/// Leases over random tokens of few kinds, against what each block was last filled with.
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
    if (lacking + match.n_idle > pool_.available()) return;
    if (!match.blocks.empty()) REQUIRE(pool_.reuse({id, match.blocks}));
    l.blocks = match.blocks;
    l.entered = l.blocks.size();
    hits += l.blocks.size();
    ids fresh;
    REQUIRE(pool_.grow(id, lacking, fresh));
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
  void enter() {
    if (leases_.empty()) return;
    auto& [id, l] = *any();
    const auto to = static_cast<std::size_t>(
        pick(static_cast<int>(l.entered), static_cast<int>(l.blocks.size())));
    const auto w = static_cast<std::ptrdiff_t>(width_);
    pool_.enter({id,
                 {l.tokens.begin() + static_cast<std::ptrdiff_t>(l.entered) * w,
                  l.tokens.begin() + static_cast<std::ptrdiff_t>(to) * w}});
    l.entered = to;
  }
  void drop() {
    if (leases_.empty()) return;
    const auto l = any();
    pool_.drop(l->first);
    leases_.erase(l);
  }
  void check() {
    REQUIRE(pool_.used() + pool_.cached() + pool_.free() == pool_.total());
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
  /// Whatever is not used can be had, all of it.
  void fill() {
    ids all;
    const auto n = static_cast<std::int32_t>(pool_.available());
    REQUIRE_FALSE(pool_.grow(next_, n + 1, all));
    REQUIRE(pool_.grow(next_, n, all));
    REQUIRE(pool_.cached() == 0);
    pool_.drop(next_++);
  }

  std::size_t hits = 0;

private:
  struct held {
    ids tokens, blocks;
    std::size_t entered = 0;
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

recorder finished(bench& b, const actors::request& what) {
  recorder r;
  b.port.submit(what, r.callback());
  REQUIRE(r.wait_over());
  CHECK(r.broken() == "");
  CHECK_FALSE(r.error());
  return r;
}

actors::request endless(const std::string& prompt, std::int32_t max_tokens) {
  auto what = text_request(prompt, max_tokens);
  what.sampling.ignore_eos = true;
  return what;
}

std::string alone(const std::string& prompt, std::int32_t max_tokens, std::int32_t shareable = 0) {
  return solo(prompt, max_tokens, 0, 0, 0, true, shareable).text;
}

} // namespace

TEST_CASE("a hash that is always the same shares nothing that differs", "[actors][policy]") {
  prefix_tree tree(8, same_hash);
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

TEST_CASE("the least recently used prefix is evicted first, its end before its beginning",
          "[actors][policy]") {
  block_pool pool(6, 2);
  const ids a{1, 2, 3, 4, 5, 6}, b{1, 2, 7, 8}, c{9, 9};
  const ids blocks_a = leave_behind(pool, 1, a, 2);
  leave_behind(pool, 2, b, 2); // its first block is a's already: that copy is free again
  leave_behind(pool, 3, c, 2);
  CHECK(pool.cached() == 5);
  CHECK(pool.free() == 1);
  const auto match = match_of(pool, a);
  CHECK(match.blocks == blocks_a);
  CHECK(match.n_idle == 3);
  REQUIRE(pool.reuse({4, match.blocks})); // a is the most recently used now
  CHECK(pool.used() == 3);
  pool.drop(4);
  ids taken;
  REQUIRE(pool.grow(5, 2, taken)); // the free one, then the end of b
  CHECK(match_of(pool, b).blocks.size() == 1);
  CHECK(match_of(pool, c).blocks.size() == 1);
  REQUIRE(pool.grow(5, 2, taken)); // c, then the end of a
  CHECK(match_of(pool, c).blocks.empty());
  CHECK(match_of(pool, a).blocks.size() == 2);
  REQUIRE(pool.grow(5, 2, taken));
  CHECK(match_of(pool, a).blocks.empty());
  CHECK_FALSE(pool.grow(5, 1, taken));
  pool.drop(5);
  CHECK(pool.free() == 6);
}

TEST_CASE("what is used is not evicted, nor is what leads to it", "[actors][policy]") {
  block_pool pool(4, 1);
  ids first, second, more;
  REQUIRE(pool.grow(1, 2, first));
  REQUIRE(pool.grow(2, 2, second));
  pool.enter({1, {5, 6}});
  pool.enter({2, {5, 7}}); // a copy of 5; 7 stands behind the first one's
  pool.drop(1);
  CHECK(pool.used() == 3); // 5 twice and 7
  CHECK(pool.cached() == 1);
  REQUIRE(pool.grow(3, 1, more));
  CHECK_FALSE(pool.grow(3, 1, more));
  CHECK(match_of(pool, {5, 7}).blocks == ids{first[0], second[1]});
  pool.drop(2);
  CHECK(pool.cached() == 2);
  CHECK(pool.free() == 1);
}

TEST_CASE("random leases, forks and entries keep the pool's invariants", "[actors][policy]") {
  std::size_t hits = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 shape(seed);
    const auto width = static_cast<std::int32_t>(1 + shape() % 3);
    pool_model m(seed, static_cast<std::int32_t>(1 + shape() % 30), width,
                 seed % 3 == 0 ? same_hash : prefix_tree::mixed_hash);
    for (int op = 0; op < 200; ++op) {
      const int what = m.pick(0, 19);
      what < 7 ? m.begin() : what < 8 ? m.fork() : what < 14 ? m.enter() : m.drop();
      if (m.pick(0, 50) == 0) m.fill();
      m.check();
    }
    hits += m.hits;
  }
  CHECK(hits > 5000);
}

TEST_CASE("the planner begins after a hit and leaves what it costs to nobody else",
          "[actors][policy]") {
  actors::planner p({64, 8, 4, true});
  actors::decision d;
  std::vector<sequence_id> ids_out;
  p.add({1, 0, 10, 4});
  p.add({2, 0, 10, 4});
  p.candidates(ids_out);
  CHECK(ids_out == std::vector<sequence_id>{1, 2});
  p.plan(4, d);
  CHECK(d.rows.empty()); // not looked up
  const actors::prefix_hit hits[] = {{1, 2, 2}, {2, 2, 0}};
  p.plan(4, d, hits); // 1: two idle and a new one; 2: a new one, and none to spare
  REQUIRE(d.rows.size() == 1);
  CHECK(d.reuses == std::vector<sequence_id>{1});
  CHECK(d.rows[0].first_position == 8);
  CHECK(d.rows[0].n_tokens == 2);
  CHECK(d.rows[0].draws);
  REQUIRE(d.grows.size() == 1);
  CHECK(d.grows[0].n_blocks == 1);
}

TEST_CASE("a prompt that was computed before is reported and not computed again", "[actors]") {
  bench b;
  REQUIRE(b.ready());
  const std::string prompt = prompt_of(1, 44);
  for (int round = 0; round < 3; ++round) {
    const auto before = b.plan->computed.load();
    auto r = finished(b, endless(prompt, 9));
    CHECK(r.text() == alone(prompt, 9));
    CHECK(r.use().prompt_tokens == 44);
    CHECK(r.use().cached_tokens == (round == 0 ? 0 : 40)); // the last token is always computed
    CHECK(b.plan->computed - before == (round == 0 ? 52 : 12));
  }
  CHECK(b.no_blocks_used());
  CHECK(b.port.stats().prefix_cache_queries == 3 * 44);
  CHECK(b.port.stats().prefix_cache_hits == 2 * 40);
}

TEST_CASE("the next turn of a chat begins after the answer of the last", "[actors]") {
  bench b;
  REQUIRE(b.ready());
  std::string chat = "system: be brief. user: hello";
  std::int32_t seen = 0;
  for (int turn = 0; turn < 4; ++turn) {
    auto r = finished(b, endless(chat, 15));
    CHECK(r.text() == alone(chat, 15));
    CHECK(r.use().cached_tokens == seen);
    chat += r.text();
    seen = (static_cast<std::int32_t>(chat.size()) - 1) / 4 * 4; // the last drawn has no KV
    chat += " user: and turn " + std::to_string(turn);
  }
}

TEST_CASE("the token that stopped a text has no KV to be found", "[actors]") {
  bench b;
  REQUIRE(b.ready());
  for (int length = 5; length < 13; ++length) { // the stop falls on every place in a block
    const std::string prompt = prompt_of(length, length);
    const std::string whole = alone(prompt, 6);
    if (whole.size() < 6) continue; // drew the end id, which has no text
    auto what = endless(prompt, 20);
    what.sampling.stop_token_ids = {whole[5]};
    const auto at = whole.find(whole[5]);
    auto r = finished(b, what);
    CHECK(r.text() == whole.substr(0, at));
    const std::string next = prompt + whole.substr(0, at + 1) + "more";
    auto then = finished(b, endless(next, 10));
    CHECK(then.text() == alone(next, 10));
    CHECK(then.use().cached_tokens == (length + static_cast<std::int32_t>(at)) / 4 * 4);
  }
}

TEST_CASE("a prefix that still runs is shared with who comes meanwhile", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->delay_us = 500;
  bench b({}, plan);
  REQUIRE(b.ready());
  const std::string system = prompt_of(7, 40);
  recorder first;
  b.port.submit(endless(system + "one", 100), first.callback());
  REQUIRE(first.wait_tokens(3));
  auto second = finished(b, endless(system + "other", 20));
  CHECK_FALSE(first.over());
  CHECK(second.use().cached_tokens == 40);
  CHECK(second.text() == alone(system + "other", 20));
  REQUIRE(first.wait_over());
  CHECK(first.text() == alone(system + "one", 100));
}

TEST_CASE("without the cache nothing is reused", "[actors]") {
  config::options options;
  options.kv.prefix_cache = false;
  bench b(options);
  REQUIRE(b.ready());
  for (int round = 0; round < 2; ++round) {
    auto r = finished(b, endless(prompt_of(1, 44), 9));
    CHECK(r.text() == alone(prompt_of(1, 44), 9));
    CHECK(r.use().cached_tokens == 0);
  }
  CHECK(b.port.stats().prefix_cache_queries == 0);
}

TEST_CASE("choices share a prompt that was cached", "[actors]") {
  bench b;
  REQUIRE(b.ready());
  auto what = text_request(prompt_of(3, 41), 12, 1.0f);
  what.sampling.n = 4;
  what.sampling.seed = 77;
  what.sampling.ignore_eos = true;
  for (int round = 0; round < 3; ++round) {
    auto r = finished(b, what);
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(r.text(i) == solo(prompt_of(3, 41), 12, 1.0f, 77 + i, 0, true).text);
    CHECK(r.use().cached_tokens == (round == 0 ? 0 : 40));
    CHECK(b.no_blocks_used());
  }
}

TEST_CASE("a restarted executor's prefixes are forgotten", "[actors]") {
  bench b;
  REQUIRE(b.ready());
  const std::string prompt = prompt_of(5, 33);
  finished(b, endless(prompt, 5));
  b.plan->fail_at = b.plan->steps.load();
  recorder lost;
  b.port.submit(endless("lost", 5), lost.callback());
  REQUIRE(lost.wait_over());
  REQUIRE(lost.error());
  for (int round = 0; round < 2; ++round) {
    auto r = finished(b, endless(prompt, 5));
    CHECK(r.text() == alone(prompt, 5));
    CHECK(r.use().cached_tokens == (round == 0 ? 0 : 32));
  }
  CHECK(b.port.stats().executor_restarts == 1);
}

TEST_CASE("where KV depends on lengths, only sequences within the bound share", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->shareable_length = 30;
  plan->max_context = 150;
  bench b({}, plan);
  REQUIRE(b.ready());
  const std::string all = prompt_of(2, 90);
  const auto run = [&](int length, int max_tokens) {
    auto r = finished(b, endless(all.substr(0, static_cast<std::size_t>(length)), max_tokens));
    CHECK(r.text() == alone(all.substr(0, static_cast<std::size_t>(length)), max_tokens, 30));
    return r;
  };
  CHECK(run(25, 40).use().cached_tokens == 0); // goes past the bound
  CHECK(run(25, 40).use().cached_tokens == 24);
  CHECK(run(60, 10).use().cached_tokens == 0);
  CHECK(run(70, 10).use().cached_tokens == 0); // nor did the longer one leave anything
  CHECK(run(60, 10).use().cached_tokens == 0);
  const auto turn = run(25, 5);
  CHECK(turn.use().cached_tokens == 24);
  const auto grown = all.substr(0, 25) + alone(all.substr(0, 25), 40, 30).substr(0, 20);
  auto r = finished(b, endless(grown, 10)); // 45 tokens: its frequencies are others
  CHECK(r.text() == alone(grown, 10, 30));
  CHECK(r.use().cached_tokens == 0);
}

TEST_CASE(
    "under pressure, with preemptions, cancels and shared beginnings, texts are the solo ones",
    "[actors]") {
  const std::int32_t shareable = GENERATE(0, 40);
  config::options options;
  options.scheduler.max_step_tokens = 24;
  options.scheduler.max_running = 8;
  auto plan = std::make_shared<script>();
  plan->n_blocks = 40;
  plan->max_context = 160;
  plan->shareable_length = shareable;
  bench b(options, plan);
  REQUIRE(b.ready());
  const auto prompt = [](int i) {
    return prompt_of(i % 4, 10 + (i * 13) % 50) + (i % 3 == 0 ? "" : prompt_of(i, i % 11));
  };
  const auto tokens = [](int i) { return 1 + (i * 29) % 80; };
  for (int round = 0; round < 3; ++round) {
    std::vector<recorder> all(60);
    std::vector<actors::request_id> live;
    for (int i = 0; i < 60; ++i) {
      auto what = endless(prompt(i), tokens(i));
      if (i % 9 == 4) what.sampling.n = 3;
      live.push_back(b.port.submit(what, all[static_cast<std::size_t>(i)].callback()));
      if (i % 7 == 3) b.port.cancel(live[static_cast<std::size_t>(i - i % 3)]);
    }
    for (int i = 0; i < 60; ++i) {
      recorder& r = all[static_cast<std::size_t>(i)];
      bool cancelled = false;
      for (int k = i; k < std::min(i + 3, 60); ++k)
        cancelled = cancelled || (k % 7 == 3 && k - k % 3 == i);
      if (cancelled) continue;
      REQUIRE(r.wait_over());
      CHECK(r.broken() == "");
      CHECK_FALSE(r.error());
      for (std::size_t c = 0; c < (i % 9 == 4 ? 3u : 1u); ++c)
        CHECK(r.text(c) == alone(prompt(i), tokens(i), shareable));
    }
    CHECK(b.no_blocks_used());
  }
  CHECK(b.port.stats().preemptions > 0);
  CHECK(b.port.stats().prefix_cache_hits > 0);
}
