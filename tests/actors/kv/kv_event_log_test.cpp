// kv_event_log merges the reports of the block allocator and of the KV tiers into one sequence of
// events. Only blocks of the published cache scope (actors/kv/cache_scope.hpp) have events, parents
// before children. The tests also cover what a late reader gets. With tiers, under random
// schedules, the log is tested in offloader/kv_tiers_test.cpp.
#include <memory>
#include <utility>
#include <vector>

#include "actors/kv/apply_change.hpp"
#include "actors/kv/grant_blocks.hpp"
#include "tests/actors/kv/router_view.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::actors;
using twill::testing::router_view;

namespace {

using ids = std::vector<std::int32_t>;
constexpr int width = 8;
constexpr std::uint64_t scope = 5;

ids tokens_of(int from, int n_blocks) {
  ids all;
  for (int i = 0; i < n_blocks * width; ++i)
    all.push_back(from * 1000 + i);
  return all;
}

struct pool_with_log {
  explicit pool_with_log(std::int32_t n_blocks, std::size_t most = kv_event_log::most_waiting)
      : log(most), pool(n_blocks, width), router(log.key(), scope) {
    pool.name_blocks(log.key());
    log.begin(scope);
  }
  void change(const kv_change& asked) { apply_change(pool, asked, &log); }
  /// Returns at most n blocks. Reports blocks that have entered or left the prefix tree.
  ids grant(std::int64_t n) {
    block_request request;
    request.n_more = n;
    return grant_blocks(pool, request, nullptr, {}, &log).blocks;
  }
  /// Computes blocks for a new sequence and caches them, without a report.
  void compute_unreported(sequence_id id, const ids& tokens, std::uint64_t of = scope) {
    kv_change grows, inserts, drops;
    const auto n_blocks = static_cast<std::int32_t>(tokens.size() / width);
    grows.grows.push_back({id, n_blocks});
    grows.blocks = grant(n_blocks);
    change(grows);
    inserts.prefix_inserts.push_back({id, tokens, of});
    change(inserts);
    drops.drops.push_back(id);
    change(drops);
  }
  void compute(sequence_id id, const ids& tokens, std::uint64_t of = scope) {
    compute_unreported(id, tokens, of);
    grant(0);
  }
  std::size_t on_device() {
    router.take(log);
    return router.all().size();
  }
  kv_event_log log;
  block_pool pool;
  router_view router;
};

} // namespace

TEST_CASE("Blocks that enter or leave the prefix tree make events, parents first", "[actors][kv]") {
  pool_with_log all(6);
  CHECK(all.on_device() == 0);
  all.compute(1, tokens_of(1, 3));
  CHECK(all.on_device() == 3);
  all.compute(2, tokens_of(2, 3));
  CHECK(all.on_device() == 6);
  all.compute(3, tokens_of(3, 2)); // two blocks are evicted
  CHECK(all.on_device() == 6);
  for (std::int32_t block = 0; block < 6; ++block) {
    REQUIRE(all.pool.holds(block));
    CHECK(all.router.has(all.pool.identity(block).key, kv_medium::device));
  }
}

TEST_CASE("Blocks are reported with the next grant, and not at all if it evicts them",
          "[actors][kv]") {
  pool_with_log all(6);
  all.compute_unreported(1, tokens_of(1, 3));
  CHECK(all.on_device() == 0);
  CHECK(all.grant(4).size() == 4); // three of these were free
  CHECK(all.on_device() == 2);
  CHECK(all.grant(6).size() == 2);
  CHECK(all.on_device() == 0);
}

TEST_CASE("Blocks of another scope are not published, nor blocks behind them", "[actors][kv]") {
  pool_with_log all(8);
  all.compute(1, tokens_of(1, 3), 99);
  CHECK(all.on_device() == 0);
  all.log.use_scope(99);
  all.compute(2, tokens_of(1, 4), 99); // the tree has three of the blocks, all unpublished
  CHECK(all.on_device() == 0);
}

namespace {

/// Identities of the blocks of one prefix, as the log names them.
std::vector<block_identity> chain_of(const kv_event_log& log, int n) {
  std::vector<block_identity> chain;
  block_key parent = root_key(scope);
  for (int i = 0; i < n; ++i) {
    const ids tokens(width, i);
    chain.push_back({key_after(log.key(), parent, tokens), parent, tokens});
    parent = chain.back().key;
  }
  return chain;
}

} // namespace

TEST_CASE("A block is published once all blocks before it are", "[actors][kv]") {
  kv_event_log log;
  log.begin(scope);
  router_view router(log.key(), scope);
  const auto chain = chain_of(log, 4);
  const auto n_published = [&](bool everything = false) {
    router.take(log, everything);
    return router.all().size();
  };
  log.stored(chain[3], kv_medium::disk);
  log.stored(chain[1], kv_medium::host);
  CHECK(n_published() == 0);
  log.stored(chain[0], kv_medium::device);
  CHECK(n_published() == 2);
  log.stored(chain[2], kv_medium::device);
  CHECK(n_published() == 4);
  log.removed(chain[1].key, kv_medium::host);
  CHECK(n_published() == 3); // blocks behind the gap stay published
  log.stored(chain[2], kv_medium::disk);
  CHECK(n_published() == 3);
  CHECK(n_published(true) == 1); // a snapshot leaves out blocks behind the gap
  log.removed(chain[2].key, kv_medium::device);
  CHECK(n_published() == 1);
  log.stored(chain[1], kv_medium::disk);
  CHECK(n_published() == 4);
  CHECK(n_published(true) == 4);
  log.device_is_empty();
  CHECK(n_published() == 3);
  CHECK(n_published(true) == 0);
  log.stored(chain[0], kv_medium::host);
  CHECK(n_published() == 4);
  for (const auto& one : chain)
    for (const auto medium : {kv_medium::device, kv_medium::host, kv_medium::disk})
      log.removed(one.key, medium);
  CHECK(n_published() == 0);
  CHECK(n_published(true) == 0);
}

TEST_CASE("A long prefix that moves to host memory makes three events per block", "[actors][kv]") {
  kv_event_log log;
  log.begin(scope);
  const auto chain = chain_of(log, 3000);
  for (const auto& block : chain)
    log.stored(block, kv_medium::device);
  std::size_t n = log.take(false).events.size();
  for (auto block = chain.rbegin(); block != chain.rend(); ++block) { // children are evicted first
    log.removed(block->key, kv_medium::device);
    n += log.take(false).events.size();
    log.stored(*block, kv_medium::host);
    n += log.take(false).events.size();
  }
  CHECK(n == 1 + 3 * chain.size());
}

TEST_CASE("Nothing is published where tenants do not share prefixes", "[actors][kv]") {
  config::kv_options kv;
  std::vector<config::tenant_options> tenants(1);
  tenants[0].name = "a";
  CHECK(published_scope(kv, {}) == cache_scope("", ""));
  CHECK(published_scope(kv, tenants) == cache_scope("a", ""));
  tenants.push_back(tenants.front());
  CHECK_FALSE(published_scope(kv, tenants).has_value());
  kv.share_prefixes = true;
  CHECK(published_scope(kv, tenants) == cache_scope("", ""));
  pool_with_log all(8);
  all.compute(1, tokens_of(1, 3));
  CHECK(all.on_device() == 3);
  all.log.use_scope(std::nullopt);
  all.compute(2, tokens_of(2, 3));
  CHECK(all.on_device() == 0);
}

TEST_CASE("A device that was lost has no block, and the tiers keep theirs", "[actors][kv]") {
  pool_with_log all(8);
  all.compute(1, tokens_of(1, 2));
  REQUIRE(all.on_device() == 2);
  kv_change reset;
  reset.reset = true;
  SECTION("without tiers") {
    all.change(reset);
    CHECK(all.on_device() == 0);
  }
  SECTION("with a block in host memory") {
    std::vector<block_identity> kept;
    for (std::int32_t block = 0; block < 8; ++block)
      if (all.pool.holds(block) && all.pool.identity(block).parent == root_key(scope))
        kept.push_back(all.pool.identity(block));
    REQUIRE(kept.size() == 1);
    all.log.stored(kept.front(), kv_medium::host);
    all.change(reset);
    CHECK(all.on_device() == 1);
    CHECK(all.router.has(kept.front().key, kv_medium::host));
    CHECK_FALSE(all.router.has(kept.front().key, kv_medium::device));
  }
}

TEST_CASE("A reader that is late gets a snapshot", "[actors][kv]") {
  pool_with_log all(64, 10);
  for (int i = 0; i < 8; ++i)
    all.compute(static_cast<sequence_id>(i + 1), tokens_of(i, 3));
  const auto late = all.log.take(false);
  CHECK(late.anew);
  CHECK(late.lost);
  all.compute(100, tokens_of(50, 2));
  CHECK_FALSE(all.log.take(false).anew);
  all.router.take(all.log, true);
  CHECK(all.router.all().size() == 26);
}

TEST_CASE("A log that has ended takes no reports, and its waker is called once per take",
          "[actors][kv]") {
  pool_with_log all(8);
  int woken = 0;
  all.log.on_events([&] { ++woken; });
  CHECK(woken == 1); // events were waiting when the callback was set
  all.compute(1, tokens_of(1, 3));
  CHECK(woken == 1);
  CHECK(all.on_device() == 3);
  all.compute(2, tokens_of(2, 1));
  CHECK(woken == 2);
  all.log.end();
  all.compute(3, tokens_of(3, 1));
  CHECK(all.on_device() == 0);
  all.log.on_events(nullptr);
  all.log.begin(scope);
  CHECK(woken == 2);
}
