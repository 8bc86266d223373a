#include "tests/actors/offloader/tiers_twin.hpp"

#include <algorithm>
#include <string>

#include "actors/kv/block_key.hpp"
#include "tests/support/operations.hpp"

namespace twill::test {

using namespace actors;
using whereabouts = kv_tiers::whereabouts;

namespace {
constexpr std::int32_t any_free = -1;
constexpr std::int32_t no_place = -2;
} // namespace

void tiers_twin::adopt(const std::vector<kv_tiers::kept_block>& blocks, std::int32_t n_places) {
  n_disk_places_ = n_places;
  for (std::int32_t place = 0; place < n_places; ++place)
    free_.insert(place);
  for (const auto& kept : blocks) {
    if (blocks_.contains(kept.identity.key)) continue;
    block& b = blocks_[kept.identity.key];
    b.parent = kept.identity.parent;
    b.tokens = kept.identity.tokens;
    b.disk_used = ++time_;
    b.place = kept.place;
    free_.erase(kept.place);
  }
}

void tiers_twin::lose_disk() {
  limits_.disk_blocks = 0;
  limits_.keep = false;
}

std::int32_t tiers_twin::most_writing() const {
  return std::max((n_host_places_ - limits_.host_blocks) * 3 / 4, 1);
}

bool tiers_twin::on_disk_works(time_point now) const {
  return limits_.disk_blocks > 0 && now >= disk_off_until_;
}

bool tiers_twin::readable(const block& b, time_point now) const {
  if (!on_disk_works(now)) return false;
  if (n_reading() > 0 && now - read_ended_at_ > kv_tiers::longest_read) return false;
  return !b.reading || now - b.read_since <= kv_tiers::longest_read;
}

std::int32_t tiers_twin::n_host() const {
  return static_cast<std::int32_t>(std::count_if(
      blocks_.begin(), blocks_.end(), [](const auto& one) { return one.second.host_used > 0; }));
}
std::int32_t tiers_twin::n_writing() const {
  return static_cast<std::int32_t>(std::count_if(
      blocks_.begin(), blocks_.end(), [](const auto& one) { return one.second.writing; }));
}
std::int32_t tiers_twin::n_reading() const {
  return static_cast<std::int32_t>(std::count_if(
      blocks_.begin(), blocks_.end(), [](const auto& one) { return one.second.reading; }));
}

/// Makes a block the most recently used one of each tier that has it.
void tiers_twin::use(block& b) {
  if (b.host_used > 0) b.host_used = ++time_;
  if (b.disk_used > 0) b.disk_used = ++time_;
}

/// Uses the beginning of a prefix last, so that its end is evicted first.
void tiers_twin::use_path(std::span<const block_key> prefix) {
  for (auto key = prefix.rbegin(); key != prefix.rend(); ++key)
    if (const auto at = blocks_.find(*key); at != blocks_.end()) use(at->second);
}

bool tiers_twin::touch(const block_key& key) {
  const auto at = blocks_.find(key);
  if (at == blocks_.end()) return false;
  use(at->second);
  return true;
}

void tiers_twin::note_take(bool taken) {
  if (open_ && !taken) ++counts_.dropped;
}

std::vector<block_key> tiers_twin::match(block_key parent, std::span<const std::int32_t> tokens,
                                         time_point now, bool with_gaps) const {
  std::vector<block_key> found;
  const auto width = static_cast<std::size_t>(limits_.block_tokens);
  for (std::size_t at = 0; open_ && at + width <= tokens.size(); at += width) {
    const std::vector<std::int32_t> own(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                        tokens.begin() + static_cast<std::ptrdiff_t>(at + width));
    const block_key key = key_after(limits_.key, parent, own);
    const block* b = find(key);
    const bool has = b != nullptr && b->parent == parent && b->tokens == own &&
                     (b->bytes != nullptr || readable(*b, now));
    if (!has && !with_gaps) break;
    if (has) found.push_back(key);
    parent = key;
  }
  return found;
}

std::vector<tiers_twin::write> tiers_twin::put(const std::vector<spilled>& blocks, time_point now) {
  std::vector<write> writes;
  if (!open_) return writes;
  std::vector<block_key> keys;
  for (const auto& [identity, bytes] : blocks) {
    const block_key key = identity.key;
    keys.push_back(key);
    if (blocks_.contains(key)) continue;
    ++counts_.spilled;
    block& b = blocks_[key];
    b.parent = identity.parent;
    b.tokens = identity.tokens;
    b.bytes = bytes;
    const bool has_host = limits_.host_blocks > 0;
    if (has_host) b.host_used = ++time_;
    const bool to_disk = limits_.keep || !has_host;
    if (to_disk && !order_write(key, now, writes)) {
      if (has_host) {
        unwritten_.push_back(key);
      } else {
        ++counts_.dropped;
        blocks_.erase(key);
      }
    }
  }
  if (!limits_.keep) std::reverse(writes.begin(), writes.end());
  use_path(keys);
  shrink(now, writes);
  return writes;
}

void tiers_twin::freshen(std::span<const block_key> prefix) {
  use_path(prefix);
}

/// Called when host memory has too many blocks: the least recently used ones are written to disk.
/// If not all of them can be written, those at the beginnings of prefixes are preferred.
void tiers_twin::shrink(time_point now, std::vector<write>& writes) {
  std::vector<std::pair<std::uint64_t, block_key>> by_use;
  for (const auto& [key, b] : blocks_)
    if (b.host_used > 0) by_use.emplace_back(b.host_used, key);
  std::sort(by_use.begin(), by_use.end());
  const auto too_many = std::max(n_host() - limits_.host_blocks, 0);
  by_use.resize(static_cast<std::size_t>(too_many));
  std::vector<write> own;
  for (auto leaving = by_use.rbegin(); leaving != by_use.rend(); ++leaving) {
    const block_key key = leaving->second;
    block& b = blocks_.at(key);
    b.host_used = 0;
    if (b.disk_used == 0 && !b.writing) order_write(key, now, own);
    if (!b.writing) b.bytes = nullptr;
    forget_if_nowhere(key);
  }
  if (!limits_.keep) std::reverse(own.begin(), own.end());
  writes.insert(writes.end(), own.begin(), own.end());
}

bool tiers_twin::order_write(const block_key& key, time_point now, std::vector<write>& writes) {
  if (!on_disk_works(now) || n_writing() >= most_writing()) return false;
  const std::int32_t place = take_place(now);
  if (place == no_place) return false;
  block& b = blocks_.at(key);
  b.writing = true;
  b.place = place;
  writes.push_back({key, b.bytes, place});
  return true;
}

std::int32_t tiers_twin::take_place(time_point now) {
  if (!aside_.empty() && now >= retry_aside_at_) {
    free_.insert(aside_.begin(), aside_.end());
    aside_.clear();
  }
  if (free_.size() > n_free_taken_) {
    ++n_free_taken_;
    return any_free;
  }
  // A disk that refused a place may be full: use the places that exist, and add none.
  if (n_disk_places_ < limits_.disk_blocks && aside_.empty()) return n_disk_places_++;
  auto oldest = blocks_.end();
  for (auto at = blocks_.begin(); at != blocks_.end(); ++at) {
    if (at->second.disk_used == 0 || at->second.reading) continue;
    if (oldest == blocks_.end() || at->second.disk_used < oldest->second.disk_used) oldest = at;
  }
  if (oldest == blocks_.end()) return no_place;
  const std::int32_t place = std::exchange(oldest->second.place, -1);
  oldest->second.disk_used = 0;
  forget_if_nowhere(block_key(oldest->first));
  return place;
}

void tiers_twin::forget_if_nowhere(const block_key& key) {
  const block& b = blocks_.at(key);
  if (b.host_used == 0 && b.disk_used == 0 && !b.writing) blocks_.erase(key);
}

void tiers_twin::place_writes(const std::vector<write>& expected,
                              const std::vector<kv_tiers::write_order>& orders) {
  demand_equal(orders.size(), expected.size(), "the number of writes");
  n_free_taken_ = 0;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const std::string what = "write " + std::to_string(i);
    block& b = blocks_.at(expected[i].key);
    demand(orders[i].identity.key == expected[i].key, what + " is of another block");
    demand(orders[i].identity.parent == b.parent && orders[i].identity.tokens == b.tokens,
           what + " says another parent or other tokens");
    demand(orders[i].bytes.get() == expected[i].bytes, what + " has other bytes");
    if (expected[i].place == any_free)
      demand(free_.erase(orders[i].place) == 1, what + " goes to a place that is not free");
    else
      demand_equal(orders[i].place, expected[i].place, "the place of " + what);
    b.place = orders[i].place;
  }
}

whereabouts tiers_twin::fetch(const block_key& key, const reader& who, bool has_memory,
                              time_point now) {
  const auto at = blocks_.find(key);
  if (!open_ || at == blocks_.end()) return whereabouts::nowhere;
  block& b = at->second;
  if (b.bytes != nullptr) {
    ++counts_.from_host;
    return whereabouts::on_host;
  }
  if (!readable(b, now)) return whereabouts::nowhere;
  if (b.reading) {
    b.readers.push_back(who);
    return whereabouts::on_its_way;
  }
  if (!has_memory) return whereabouts::nowhere;
  if (n_reading() == 0) read_ended_at_ = now;
  b.reading = true;
  b.read_since = now;
  b.readers = {who};
  return whereabouts::on_disk;
}

/// Called when reading or writing a place (the disk space of one block) has failed. That place is
/// not written for a while. After several failures in a row, the whole disk is not used for a
/// while.
void tiers_twin::fail(std::int32_t place, time_point now) {
  aside_.insert(place);
  retry_aside_at_ = now + kv_tiers::disk_pause;
  if (++failures_in_a_row_ == kv_tiers::most_failures_in_a_row) {
    failures_in_a_row_ = 0;
    disk_off_until_ = now + kv_tiers::disk_pause;
  }
}

std::vector<tiers_twin::reader> tiers_twin::read_done(const block_key& key, memory to, bool good,
                                                      time_point now, std::vector<write>& writes) {
  block& b = blocks_.at(key);
  const std::vector<reader> waited = std::exchange(b.readers, {});
  b.reading = false;
  read_ended_at_ = now;
  if (!good) {
    ++counts_.failed_reads;
    fail(std::exchange(b.place, -1), now);
    b.disk_used = 0;
    forget_if_nowhere(key);
    return waited;
  }
  failures_in_a_row_ = 0;
  counts_.from_disk += waited.size();
  if (limits_.host_blocks == 0) return waited;
  b.bytes = to;
  b.host_used = ++time_;
  shrink(now, writes);
  return waited;
}

void tiers_twin::write_done(const block_key& key, bool good, time_point now,
                            std::vector<write>& writes) {
  block& b = blocks_.at(key);
  b.writing = false;
  if (good) {
    failures_in_a_row_ = 0;
    ++counts_.written;
    b.disk_used = ++time_;
  } else {
    ++counts_.failed_writes;
    fail(std::exchange(b.place, -1), now);
  }
  if (b.host_used == 0) b.bytes = nullptr;
  forget_if_nowhere(key);
  // Write blocks that wait for their turn. If no write is possible, drop them from the queue.
  while (!unwritten_.empty()) {
    const block_key next = unwritten_.front();
    const block* waiting = find(next);
    const bool waits = waiting != nullptr && waiting->host_used > 0 && waiting->disk_used == 0 &&
                       !waiting->writing;
    if (waits && !order_write(next, now, writes)) {
      if (n_writing() == 0) unwritten_.clear();
      return;
    }
    unwritten_.erase(unwritten_.begin());
  }
}

const tiers_twin::block* tiers_twin::find(const block_key& key) const {
  const auto at = blocks_.find(key);
  return at == blocks_.end() ? nullptr : &at->second;
}

tier_counts tiers_twin::counted() const {
  tier_counts all = counts_;
  all.host_blocks = n_host();
  all.disk_blocks = std::count_if(blocks_.begin(), blocks_.end(),
                                  [](const auto& one) { return one.second.disk_used > 0; });
  return all;
}

std::set<tiers_twin::memory> tiers_twin::host_memory() const {
  std::set<memory> all;
  for (const auto& [key, b] : blocks_)
    if (b.bytes != nullptr) demand(all.insert(b.bytes).second, "two blocks have one host memory");
  return all;
}

} // namespace twill::test
