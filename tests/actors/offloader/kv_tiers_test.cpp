// The block allocator, the prefix tree and the KV tiers without actors, under random schedules that
// replay from a seed: arrivals, cancels, evictions, lost devices, and a disk whose reads and writes
// fail or come late. The bytes of each block identify the prefix that the block holds.
#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "actors/kv/apply_change.hpp"
#include "actors/kv/grant_blocks.hpp"
#include "actors/offloader/kv_tiers.hpp"
#include "tests/actors/kv/router_view.hpp"
#include "tests/catch.hpp"

namespace {

using namespace twill::actors;
using twill::nothing;
using ids = std::vector<std::int32_t>;

constexpr std::int32_t width = 4;
constexpr hash_key key{1, 2};

std::uint64_t content_of(const ids& tokens, std::size_t n_blocks, std::uint64_t scope) {
  std::uint64_t h = scope * 977 + 5;
  for (std::size_t i = 0; i < n_blocks * width; ++i)
    h = (h ^ static_cast<std::uint64_t>(tokens[i] + 1)) * 0x100000001b3ULL;
  return h;
}

std::uint64_t read(const host_block& bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.get(), sizeof value);
  return value;
}

class simulation {
public:
  explicit simulation(std::uint64_t seed) : rng_(seed) {
    kv_tiers::limits l;
    n_device_ = pick(6, 24);
    l.host_blocks = pick(0, 2) == 0 ? 0 : pick(1, 20);
    l.disk_blocks = l.host_blocks == 0 || pick(0, 2) > 0 ? pick(1, 40) : 0;
    l.block_tokens = width;
    l.keep = l.disk_blocks > 0 && pick(0, 1) == 0;
    l.key = key;
    faults_ = pick(0, 2) == 0 ? 0 : pick(1, 30);
    tiers_ = std::make_unique<kv_tiers>(l);
    places_ = l.host_blocks + pick(4, 20);
    pool_memory_ = host_pool::create(64, places_).value();
    log_->begin(0);
    tiers_->report_to(log_);
    tiers_->open(pool_memory_);
    pool_ = std::make_unique<block_pool>(n_device_, width);
    pool_->name_blocks(key);
    device_.assign(static_cast<std::size_t>(n_device_), 0);
  }

  void run(int n_operations) {
    for (int i = 0; i < n_operations; ++i) {
      const int what = pick(0, 99);
      if (what < 20)
        arrive();
      else if (what < 55)
        admit();
      else if (what < 70)
        leave();
      else if (what < 78)
        repeat(&simulation::write_one);
      else if (what < 90)
        repeat(&simulation::read_one);
      else if (what < 97)
        tell_spilled();
      else if (what < 98)
        lose_device();
      else
        now_ += std::chrono::seconds(pick(0, 12));
      check();
    }
    finish();
  }
  int from_tiers = 0, refused = 0, joined = 0, published_on_tiers = 0;

private:
  struct sequence {
    ids tokens;
    std::uint64_t scope = 0;
    std::size_t first = 0; ///< number of the first fetched block
    std::vector<host_block> fetched;
    std::size_t reads_left = 0;
    std::uint64_t fetch = 0; ///< the number of the last fetch
    ids blocks;
    bool running = false;
  };

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng_); }
  void repeat(void (simulation::*one)()) {
    for (int n = pick(1, 6); n > 0; --n)
      (this->*one)();
  }
  bool fails() { return pick(0, 99) < faults_; }

  void change(const kv_change& made) {
    apply_change(*pool_, made, log_.get());
    unreported_ = unreported_ || !made.prefix_inserts.empty();
  }
  kv_grant ask(const block_request& request) {
    kv_grant grant = grant_blocks(*pool_, request, tiers_.get(), now_, log_.get());
    ahead_.insert(ahead_.end(), grant.blocks.begin(), grant.blocks.end());
    unreported_ = false;
    carry_out(grant);
    return grant;
  }

  /// Carries out a plan as the executor does: blocks are spilled before any block is written.
  void carry_out(const kv_grant& grant) {
    for (const block_spill& s : grant.spills) {
      const std::uint64_t value = device_[static_cast<std::size_t>(s.block)];
      std::memcpy(s.to.get(), &value, sizeof value);
      spilled_.push_back({s.identity, s.to});
    }
  }

  void tell_spilled() {
    std::vector<kv_tiers::write_order> orders;
    tiers_->put(std::exchange(spilled_, {}), now_, orders);
    take(orders);
  }
  void take(std::vector<kv_tiers::write_order>& orders) {
    for (auto& order : orders) {
      REQUIRE(written_to_.insert(order.place).second); // no place has two writers
      REQUIRE_FALSE(read_from_.contains(order.place));
      disk_.erase(order.place); // a crash may leave anything there
      writes_.push_back(std::move(order));
    }
    orders.clear();
  }
  void write_one() {
    if (writes_.empty()) return;
    const auto at = writes_.begin() + pick(0, static_cast<int>(writes_.size()) - 1);
    const kv_tiers::write_order order = std::move(*at);
    writes_.erase(at);
    const bool good = !fails();
    if (good) disk_[order.place] = {order.identity.key, read(order.bytes)};
    written_to_.erase(order.place);
    std::vector<kv_tiers::write_order> more;
    tiers_->write_done(order, good, now_, more);
    take(more);
  }
  void read_one() {
    if (reads_.empty()) return;
    const auto at = reads_.begin() + pick(0, static_cast<int>(reads_.size()) - 1);
    const kv_tiers::read_order order = std::move(*at);
    reads_.erase(at);
    read_from_.erase(order.place);
    const auto stored = disk_.find(order.place);
    REQUIRE(stored != disk_.end()); // nothing is read before it was written
    REQUIRE(stored->second.first == order.key);
    const bool good = !fails();
    if (good) std::memcpy(order.to.get(), &stored->second.second, 8);
    std::vector<kv_tiers::write_order> writes;
    const auto waited = tiers_->read_done(order, good, now_, writes);
    REQUIRE_FALSE(waited.empty());
    take(writes);
    for (const kv_tiers::reader& who : waited)
      for (auto& [id, s] : sequences_) {
        if (s.fetch != who.fetch || s.reads_left == 0) continue; // this fetch was given up
        if (good) s.fetched[who.index] = order.to;
        if (--s.reads_left == 0) cut(s);
      }
    joined += static_cast<int>(waited.size()) - 1;
  }
  static void cut(sequence& s) {
    s.fetched.erase(std::find(s.fetched.begin(), s.fetched.end(), nullptr), s.fetched.end());
  }

  void arrive() {
    if (sequences_.size() > 12) return;
    sequence s;
    s.scope = static_cast<std::uint64_t>(pick(0, 1));
    const int n = pick(1, 8);
    for (int i = 0; i < n * width + 1; ++i)
      s.tokens.push_back(pick(0, 9) < 8 ? 0 : pick(1, 2));
    sequences_.emplace(next_++, std::move(s));
  }

  void admit() {
    const auto waiting = [&] {
      std::vector<sequence_id> all;
      for (const auto& [id, s] : sequences_)
        if (!s.running && s.reads_left == 0) all.push_back(id);
      return all;
    }();
    if (waiting.empty()) return;
    const sequence_id id = waiting[static_cast<std::size_t>(pick(0, int(waiting.size()) - 1))];
    sequence& s = sequences_.at(id);
    const std::size_t n = s.tokens.size() / width;
    block_request request;
    request.queries.push_back({id,
                               ids(s.tokens.begin(), s.tokens.begin() + std::ptrdiff_t(n * width)),
                               s.scope, static_cast<std::int32_t>(n)});
    request.n_ahead = -static_cast<std::int64_t>(ahead_.size());
    if (pick(0, 3) == 0) request.n_more = pick(0, 4);
    const prefix_match match = ask(request).matches.at(0);
    const std::size_t own = match.blocks.size();
    const bool ready = s.first <= own && own < s.first + s.fetched.size();
    if (!ready && !match.tier_keys.empty() && pick(0, 3) > 0) {
      s.first = own;
      s.fetched.clear();
      s.fetch = ++last_fetch_;
      for (std::size_t i = 0; i < match.tier_keys.size(); ++i) {
        auto handed = tiers_->fetch(match.tier_keys[i], {s.fetch, i}, now_);
        if (handed.where == kv_tiers::whereabouts::nowhere) break;
        s.fetched.push_back(handed.bytes);
        if (!handed.bytes) ++s.reads_left;
        if (handed.where != kv_tiers::whereabouts::on_disk) continue;
        REQUIRE(read_from_.insert(handed.read.place).second); // nothing is read twice at once
        reads_.push_back(std::move(handed.read));
      }
      tiers_->freshen(match.tier_keys);
      return;
    }
    const auto need = static_cast<std::int32_t>(n - own);
    if (static_cast<std::size_t>(need) > ahead_.size()) {
      ++refused;
      return;
    }
    if (pick(0, 3) == 0) leave(); // the match must stay valid
    if (!sequences_.contains(id)) return;
    kv_change admitted;
    if (own > 0) admitted.reuses.push_back({id, match.blocks});
    if (need > 0) admitted.grows.push_back({id, need});
    admitted.blocks.assign(ahead_.begin(), ahead_.begin() + need);
    ahead_.erase(ahead_.begin(), ahead_.begin() + need);
    change(admitted);
    s.blocks = match.blocks;
    s.blocks.insert(s.blocks.end(), admitted.blocks.begin(), admitted.blocks.end());
    for (std::size_t i = 0; i < n; ++i) {
      auto& here = device_[static_cast<std::size_t>(s.blocks[i])];
      const std::uint64_t right = content_of(s.tokens, i + 1, s.scope);
      if (i >= own && ready && i < s.first + s.fetched.size()) {
        here = read(s.fetched[i - s.first]);
        ++from_tiers;
      } else if (i >= own) {
        here = right; // the block was computed
      }
      REQUIRE(here == right);
    }
    s.fetched.clear();
    s.running = true;
    kv_change done;
    done.prefix_inserts.push_back({id,
                                   ids(s.tokens.begin() + std::ptrdiff_t(own * width),
                                       s.tokens.begin() + std::ptrdiff_t(n * width)),
                                   s.scope});
    change(done);
  }

  void leave() {
    if (sequences_.empty()) return;
    auto at = sequences_.begin();
    std::advance(at, pick(0, int(sequences_.size()) - 1));
    if (at->second.running) {
      kv_change left;
      left.drops.push_back(at->first);
      change(left);
    }
    sequences_.erase(at);
  }

  void lose_device() {
    kv_change lost;
    lost.reset = true;
    change(lost);
    ahead_.clear();
    unreported_ = false;
    spilled_.clear();
    std::fill(device_.begin(), device_.end(), 0);
    for (auto& [id, s] : sequences_) {
      s.running = false;
      s.blocks.clear();
      s.fetched.clear();
      s.reads_left = 0; // reads that end later are ignored
    }
  }

  void check() {
    if (unreported_ && pick(0, 2) == 0) ask({});
    REQUIRE(tiers_->consistent());
    REQUIRE(pool_->used() + pool_->ahead() + pool_->cached() + pool_->free() == pool_->total());
    REQUIRE(pool_->ahead() == static_cast<std::int64_t>(ahead_.size()));
    router_.take(*log_, pick(0, 49) == 0);
    if (!unreported_) check_published_on_device();
    check_published_on_tiers();
  }

  /// Exactly the blocks in the published scope must be published.
  void check_published_on_device() {
    std::map<block_key, block_key> parents;
    for (std::int32_t block = 0; block < n_device_; ++block)
      if (pool_->holds(block)) {
        const auto identity = pool_->identity(block);
        parents[identity.key] = identity.parent;
      }
    std::size_t n_published = 0;
    for (const auto& [block, parent] : parents) {
      block_key first = parent;
      while (parents.contains(first))
        first = parents.at(first);
      REQUIRE(router_.has(block, kv_medium::device) == (first == root_key(0)));
      n_published += first == root_key(0) ? 1 : 0;
    }
    for (const auto& [block, media] : router_.all())
      n_published -= media.contains(kv_medium::device) ? 1 : 0;
    REQUIRE(n_published == 0);
  }

  /// Checks that every block that events report in host memory or on disk can be fetched, and that
  /// every block that a prompt would find there was reported. The tiers are asked with a time one
  /// hour ahead, when no pause after disk failures is in effect any more.
  void check_published_on_tiers() {
    if (!reads_.empty()) return;
    const auto later = now_ + std::chrono::hours(1);
    for (const auto& [block, media] : router_.all()) {
      if (media.size() == 1 && media.contains(kv_medium::device)) continue;
      std::vector<block_key> found;
      tiers_->held(router_.parent(block), router_.block(block).tokens, later, found);
      REQUIRE(found == std::vector<block_key>(1, block));
      ++published_on_tiers;
    }
    for (const auto& [id, s] : sequences_) {
      if (s.scope != 0) continue;
      std::vector<block_key> found;
      const auto whole = std::ptrdiff_t(s.tokens.size() / width * width);
      tiers_->match(root_key(0), std::span(s.tokens).first(std::size_t(whole)), later, found);
      for (const block_key& block : found)
        REQUIRE((router_.has(block, kv_medium::host) || router_.has(block, kv_medium::disk)));
    }
  }

  void finish() {
    while (!sequences_.empty())
      leave();
    REQUIRE(pool_->used() == 0);
    REQUIRE(pool_->ahead() + pool_->cached() + pool_->free() == pool_->total());
    ask({});
    while (!reads_.empty())
      read_one();
    tell_spilled();
    while (!writes_.empty())
      write_one();
    check();
    const tier_counts counts = tiers_->counts();
    REQUIRE(pool_memory_->free() == places_ - counts.host_blocks);
  }

  std::mt19937_64 rng_;
  kv_tiers::time_point now_{std::chrono::hours(1)};
  std::int32_t n_device_ = 0, places_ = 0;
  int faults_ = 0; ///< percent of reads and writes that fail
  std::shared_ptr<host_pool> pool_memory_;
  std::unique_ptr<kv_tiers> tiers_;
  std::unique_ptr<block_pool> pool_;
  const std::shared_ptr<kv_event_log> log_ = std::make_shared<kv_event_log>();
  twill::testing::router_view router_{key, 0};
  std::vector<std::uint64_t> device_; ///< what each block holds
  ids ahead_;                         ///< granted blocks that no sequence has yet
  bool unreported_ = false;           ///< blocks have entered the prefix tree since the last grant
  std::map<sequence_id, sequence> sequences_;
  sequence_id next_ = 1;
  std::vector<kv_tiers::spilled_block> spilled_;
  std::vector<kv_tiers::write_order> writes_;
  std::vector<kv_tiers::read_order> reads_;
  std::uint64_t last_fetch_ = 0;
  std::map<std::int32_t, std::pair<block_key, std::uint64_t>> disk_;
  std::set<std::int32_t> written_to_;
  std::set<std::int32_t> read_from_;
};

int blocks_from_tiers(std::uint64_t first, std::uint64_t last) {
  int from_tiers = 0, joined = 0, published = 0;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    s.run(250);
    from_tiers += s.from_tiers;
    joined += s.joined;
    published += s.published_on_tiers;
  }
  CHECK(joined > 10);
  CHECK(published > 1000);
  return from_tiers;
}

} // namespace

TEST_CASE("blocks come back from the tiers as they left, whatever fails on the way", "[actors]") {
  CHECK(blocks_from_tiers(0, 300) > 100);
}

TEST_CASE("tens of thousands of schedules of blocks and tiers", "[actors][.long]") {
  CHECK(blocks_from_tiers(1000, 41000) > 10000);
}

TEST_CASE("a key says the scope and every token before it", "[actors]") {
  const ids a{1, 2, 3, 4}, b{1, 2, 3, 5};
  const block_key first = key_after(key, root_key(0), a);
  CHECK(first == key_after(key, root_key(0), a));
  CHECK(first != key_after(key, root_key(7), a));
  CHECK(first != key_after(key, root_key(0), b));
  CHECK(first != key_after({1, 3}, root_key(0), a));
  CHECK(key_after(key, first, a) != key_after(key, key_after(key, root_key(0), b), a));
}

namespace {

/// A device whose blocks all hold one prefix, in their order, and are cached.
struct full_device {
  static constexpr std::int32_t n_blocks = 12;
  explicit full_device(kv_tiers& tiers) : pool(n_blocks, width) {
    for (int i = 0; i < n_blocks * width; ++i)
      tokens.push_back(i);
    pool.name_blocks(key);
    kv_change change;
    change.grows.push_back({1, n_blocks});
    change.blocks = blocks = evict(tiers, n_blocks).blocks;
    apply_change(pool, change);
    change = {};
    change.prefix_inserts.push_back({1, tokens, 0});
    change.drops.push_back(1);
    apply_change(pool, change);
  }
  kv_grant evict(kv_tiers& tiers, std::int32_t n) {
    block_request request;
    request.n_ahead = n;
    return grant_blocks(pool, request, &tiers);
  }
  ids tokens, blocks;
  block_pool pool;
};

} // namespace

TEST_CASE("where host memory is short, the beginning of what is evicted gets it", "[actors]") {
  kv_tiers tiers({5, 0, width, false, 64, key});
  tiers.open(host_pool::create(64, 5).value());
  full_device device(tiers);
  const kv_grant grant = device.evict(tiers, 8); // the last eight of the prefix
  REQUIRE(grant.spills.size() == 5);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(grant.spills[i].block == device.blocks[4 + i]);
  CHECK(tiers.counts().dropped == 3);
}

TEST_CASE("of a prompt that waits all that left the device is known, also behind what did not",
          "[actors]") {
  kv_tiers tiers({12, 0, width, false, 64, key});
  tiers.open(host_pool::create(64, 12).value());
  full_device device(tiers);
  kv_grant grant = device.evict(tiers, 8); // the first four stay
  std::vector<kv_tiers::spilled_block> spilled;
  for (block_spill& s : grant.spills)
    spilled.push_back({std::move(s.identity), std::move(s.to)});
  std::vector<kv_tiers::write_order> writes;
  tiers.put(std::move(spilled), {}, writes);
  std::vector<block_key> matched, held;
  tiers.match(root_key(0), device.tokens, {}, matched);
  CHECK(matched.empty());
  tiers.held(root_key(0), device.tokens, {}, held);
  CHECK(held.size() == 8);
}

TEST_CASE("where the disk takes no more at once, beginnings are written", "[actors]") {
  const bool has_host = GENERATE(false, true);
  kv_tiers tiers({has_host ? 1 : 0, 100, width, false, 64, key});
  tiers.open(host_pool::create(64, has_host ? 13 : 12).value()); // at most nine writes at a time
  full_device device(tiers);
  kv_grant grant = device.evict(tiers, full_device::n_blocks);
  REQUIRE(grant.spills.size() == 12);
  std::vector<kv_tiers::spilled_block> spilled;
  for (block_spill& s : grant.spills)
    spilled.push_back({std::move(s.identity), std::move(s.to)});
  const block_identity first = spilled.front().first;
  std::vector<kv_tiers::write_order> writes;
  tiers.put(std::move(spilled), {}, writes);
  REQUIRE(writes.size() == 9);
  std::vector<block_key> found;
  tiers.match(root_key(0), device.tokens, {}, found);
  CHECK(found.size() == (has_host ? 10 : 9)); // every block that is in a tier
  if (!has_host) CHECK(tiers.counts().dropped == 3);
  // The end of the prefix is written first, so a full disk evicts the end first.
  CHECK(writes.front().identity.parent != root_key(0));
  CHECK(writes.back().identity.parent == (has_host ? first.key : root_key(0)));
  CHECK(tiers.consistent());
}
