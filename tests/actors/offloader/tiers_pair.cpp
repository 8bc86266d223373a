#include "tests/actors/offloader/tiers_pair.hpp"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "actors/kv/block_key.hpp"

namespace twill::test {

using namespace actors;
using namespace std::chrono_literals;
using whereabouts = kv_tiers::whereabouts;

namespace {

void fill(const host_block& bytes, const block_key& key) {
  std::memcpy(bytes.get(), &key, sizeof key);
}
bool is_filled(const host_block& bytes, const block_key& key) {
  return std::memcmp(bytes.get(), &key, sizeof key) == 0;
}

} // namespace

kv_tiers::limits tiers_pair::limits_of(const operation& shape, std::int32_t width) {
  kv_tiers::limits l;
  l.host_blocks = static_cast<std::int32_t>(shape.a % 5);
  l.disk_blocks = static_cast<std::int32_t>(shape.b % 7);
  l.block_tokens = width;
  l.block_bytes = 64;
  l.keep = shape.c % 2 == 1 && l.disk_blocks > 0;
  l.key = naming_key;
  return l;
}

tiers_pair::tiers_pair(const operation& shape, std::int32_t width)
    : limits_(limits_of(shape, width)),
      n_places_(limits_.host_blocks + 1 + static_cast<std::int32_t>(shape.c / 2 % 9)),
      pool_(host_pool::create(limits_.block_bytes, n_places_).value()), tiers_(limits_),
      twin_(limits_, n_places_) {
  // Before the tiers are open, they give no memory and keep no blocks.
  demand(tiers_.take_place() == nullptr && !tiers_.keeps(), "tiers that are not open have a place");
  const std::uint32_t more = shape.c / 18;
  if (limits_.keep && more % 2 == 1) {
    const std::int32_t n = std::min(limits_.disk_blocks, 1 + static_cast<std::int32_t>(more % 5));
    std::vector<kv_tiers::kept_block> kept;
    for (std::int32_t place = 0; place < n; ++place) // some places hold no whole block
      if ((more >> (place + 1)) % 4 != 0)
        kept.push_back({identity_of(text_of({0, 4, more, more / 8}), 1 + place % 3), place});
    for (const auto& one : kept)
      disk_[one.place] = one.identity.key;
    twin_.adopt(kept, n);
    tiers_.adopt(kept, n);
  } else if (more % 7 == 0) {
    tiers_.lose_disk();
    twin_.lose_disk();
  }
  tiers_.open(pool_);
  twin_.open();
  demand_equal_tiers();
}

/// Whether this operation of the disk succeeds.
bool tiers_pair::is_good(const operation& o) const {
  return disk_health_ == 0 || (disk_health_ == 1 ? o.b % 4 != 3 : o.b % 4 == 0);
}

/// The n-th block of a text; 1 is the first.
block_identity tiers_pair::identity_of(const written_text& text, std::size_t n) const {
  const auto width = static_cast<std::size_t>(limits_.block_tokens);
  block_identity one{root_key(text.scope), {}, {}};
  for (std::size_t i = 0; i < n; ++i) {
    one.parent = one.key;
    one.tokens = text.tokens(i * width, (i + 1) * width);
    one.key = key_after(limits_.key, one.parent, one.tokens);
  }
  return one;
}

void tiers_pair::wait(const operation& o) {
  constexpr std::array<std::chrono::milliseconds, 9> steps{1ms,    500ms,  1000ms, 1500ms, 1999ms,
                                                           2000ms, 2001ms, 9999ms, 10000ms};
  now_ += steps[o.a % steps.size()];
}

std::set<tiers_twin::memory> tiers_pair::memory_in_use() const {
  std::set<tiers_twin::memory> used = twin_.host_memory();
  for (const auto& [identity, bytes] : copied_)
    used.insert(bytes.get());
  for (const auto& read : reads_)
    used.insert(read.to.get());
  for (const auto& write : writes_)
    used.insert(write.bytes.get());
  for (const auto& bytes : handed_)
    used.insert(bytes.get());
  return used;
}

host_block tiers_pair::take_place() {
  const auto used = memory_in_use();
  const bool has = twin_.is_open() && used.size() < static_cast<std::size_t>(n_places_);
  host_block place = tiers_.take_place();
  twin_.note_take(place != nullptr);
  demand_equal(place != nullptr, has, "whether there is host memory");
  return place;
}

void tiers_pair::copy(const block_identity& identity, host_block to) {
  demand(to != nullptr && !memory_in_use().contains(to.get()), "host memory is given away twice");
  fill(to, identity.key);
  copied_.emplace_back(identity, std::move(to));
}

void tiers_pair::put_copied() {
  std::vector<tiers_twin::spilled> named;
  for (const auto& [identity, bytes] : copied_)
    named.emplace_back(identity, bytes.get());
  const auto expected = twin_.put(named, now_);
  std::vector<kv_tiers::write_order> orders;
  tiers_.put(std::exchange(copied_, {}), now_, orders);
  take_writes(orders, expected);
}

void tiers_pair::take_writes(std::vector<kv_tiers::write_order>& orders,
                             const std::vector<tiers_twin::write>& expected) {
  twin_.place_writes(expected, orders);
  for (auto& order : orders) {
    for (const auto& other : writes_)
      demand(other.place != order.place, "two blocks are written to one place");
    for (const auto& read : reads_)
      demand(read.place != order.place, "a place is written while it is read");
    demand(order.place >= 0 && order.place < limits_.disk_blocks, "a place is not on the disk");
    demand(is_filled(order.bytes, order.identity.key), "other bytes are written");
    disk_.erase(order.place);
    writes_.push_back(std::move(order));
  }
}

void tiers_pair::touch(const block_key& key) {
  demand_equal(tiers_.touch(key), twin_.touch(key), "touch()");
}

void tiers_pair::match(const block_key& parent, const token_list& tokens) {
  std::vector<block_key> matched{{}}, held{{}}; // match() and held() append
  tiers_.match(parent, tokens, now_, matched);
  tiers_.held(parent, tokens, now_, held);
  matched.erase(matched.begin());
  held.erase(held.begin());
  demand(matched == twin_.match(parent, tokens, now_, false), "match() finds other blocks");
  demand(held == twin_.match(parent, tokens, now_, true), "held() finds other blocks");
}

void tiers_pair::fetch(const block_key& key, const tiers_twin::reader& who) {
  const auto used = memory_in_use();
  const bool has_memory = used.size() < static_cast<std::size_t>(n_places_);
  kv_tiers::handed handed = tiers_.fetch(key, {who.first, who.second}, now_);
  const whereabouts expected = twin_.fetch(key, who, has_memory, now_);
  demand_equal(static_cast<int>(handed.where), static_cast<int>(expected), "where a block is");
  if (expected == whereabouts::on_host) {
    demand(handed.bytes.get() == twin_.find(key)->bytes && is_filled(handed.bytes, key),
           "a fetch has the bytes of another block");
    handed_.push_back(std::move(handed.bytes));
    return;
  }
  demand(handed.bytes == nullptr, "a fetch has bytes that are not there");
  if (expected != whereabouts::on_disk) return;
  demand(handed.read.key == key, "another block is read");
  demand_equal(handed.read.place, twin_.find(key)->place, "the place of a read");
  demand(handed.read.to != nullptr && !used.contains(handed.read.to.get()),
         "a block is read into memory of another");
  reads_.push_back(std::move(handed.read));
}

void tiers_pair::freshen(const std::vector<block_key>& prefix) {
  tiers_.freshen(prefix);
  twin_.freshen(prefix);
}

void tiers_pair::end_read(const operation& o) {
  if (reads_.empty()) return;
  const auto at = reads_.begin() + static_cast<std::ptrdiff_t>(o.a % reads_.size());
  kv_tiers::read_order order = std::move(*at);
  reads_.erase(at);
  const bool good = is_good(o);
  const auto stored = disk_.find(order.place);
  demand(stored != disk_.end() && stored->second == order.key,
         "a place is read that does not hold the block");
  if (good) fill(order.to, stored->second);
  std::vector<tiers_twin::write> expected;
  const auto waited = twin_.read_done(order.key, order.to.get(), good, now_, expected);
  std::vector<kv_tiers::write_order> orders;
  const auto who = tiers_.read_done(order, good, now_, orders);
  if (good) handed_.push_back(order.to);
  order.to = nullptr;
  take_writes(orders, expected);
  demand_equal(who.size(), waited.size(), "the number of readers");
  for (std::size_t i = 0; i < who.size(); ++i)
    demand(who[i].fetch == waited[i].first && who[i].index == waited[i].second,
           "another reader has waited");
}

void tiers_pair::end_write(const operation& o) {
  if (writes_.empty()) return;
  const auto at = writes_.begin() + static_cast<std::ptrdiff_t>(o.a % writes_.size());
  kv_tiers::write_order order = std::move(*at);
  writes_.erase(at);
  const bool good = is_good(o);
  demand(is_filled(order.bytes, order.identity.key), "bytes have changed while they were written");
  if (good) disk_[order.place] = order.identity.key;
  std::vector<tiers_twin::write> expected;
  twin_.write_done(order.identity.key, good, now_, expected);
  std::vector<kv_tiers::write_order> orders;
  tiers_.write_done(order, good, now_, orders);
  order.bytes = nullptr;
  take_writes(orders, expected);
}

void tiers_pair::retire() {
  tiers_.retire();
  twin_.retire();
}

void tiers_pair::demand_equal_tiers() const {
  demand(tiers_.consistent(), "the tiers contradict themselves");
  demand_equal(tiers_.keeps(), twin_.keeps(), "keeps()");
  const tier_counts is = tiers_.counts(), expected = twin_.counted();
  demand_equal(is.host_blocks, expected.host_blocks, "host_blocks");
  demand_equal(is.disk_blocks, expected.disk_blocks, "disk_blocks");
  demand_equal(is.spilled, expected.spilled, "spilled");
  demand_equal(is.dropped, expected.dropped, "dropped");
  demand_equal(is.from_host, expected.from_host, "from_host");
  demand_equal(is.from_disk, expected.from_disk, "from_disk");
  demand_equal(is.written, expected.written, "written");
  demand_equal(is.failed_reads, expected.failed_reads, "failed_reads");
  demand_equal(is.failed_writes, expected.failed_writes, "failed_writes");
  demand_equal(pool_->free(), n_places_ - static_cast<std::int32_t>(memory_in_use().size()),
               "free host memory");
  for (const auto& [key, b] : twin_.blocks()) {
    std::vector<block_key> found;
    tiers_.match(b.parent, b.tokens, now_, found);
    demand(found == twin_.match(b.parent, b.tokens, now_, false),
           "whether a block can be had is another");
  }
}

void tiers_pair::end() {
  copied_.clear();
  disk_health_ = 0;
  while (!reads_.empty() || !writes_.empty()) {
    end_read({});
    end_write({});
    demand_equal_tiers();
  }
  handed_.clear();
  demand_equal_tiers();
  demand_equal(std::int64_t{pool_->free()}, n_places_ - tiers_.counts().host_blocks,
               "free host memory at the end");
}

} // namespace twill::test
