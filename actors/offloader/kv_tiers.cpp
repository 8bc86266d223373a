#include "actors/offloader/kv_tiers.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "config/base/assert.hpp"

namespace twill::actors {

namespace {
/// The most blocks that may be on their way to disk at once. While a block is written, it takes a
/// place in host memory, and some places must stay free for blocks that the device evicts.
std::int32_t most_writing(const host_pool& pool, std::int32_t host_blocks) {
  return std::max((pool.total() - host_blocks) * 3 / 4, 1);
}
} // namespace

void kv_tiers::open(std::shared_ptr<host_pool> pool) {
  const std::lock_guard lock(mutex_);
  pool_ = std::move(pool);
  open_ = true;
  report_entries();
}

void kv_tiers::report_to(std::shared_ptr<kv_event_log> log) {
  const std::lock_guard lock(mutex_);
  log_ = std::move(log);
}

void kv_tiers::report_all() const {
  const std::lock_guard lock(mutex_);
  report_entries();
}

void kv_tiers::report_entries() const {
  if (!log_) return;
  for (const auto& [key, e] : entries_)
    report(key, e);
}

void kv_tiers::report(const block_key& key, const entry& e) const {
  if (!log_) return;
  const bool on_host = open_ && e.bytes != nullptr, on_disk = open_ && e.on_disk;
  // `stored` is reported before `removed`, so that a block that moves from host memory to disk, or
  // back, is never reported as missing from both.
  if (on_host) log_->stored({key, e.parent, e.tokens}, kv_medium::host);
  if (on_disk) log_->stored({key, e.parent, e.tokens}, kv_medium::disk);
  if (!on_host) log_->removed(key, kv_medium::host);
  if (!on_disk) log_->removed(key, kv_medium::disk);
}

void kv_tiers::lose_disk() {
  const std::lock_guard lock(mutex_);
  limits_.disk_blocks = 0;
  limits_.keep = false;
}

void kv_tiers::retire() {
  const std::lock_guard lock(mutex_);
  open_ = false;
  report_entries();
}

/// Whether a block that only the disk has can be read now.
bool kv_tiers::readable(const entry& e, time_point now) const {
  const bool hangs = n_reading_ > 0 && now - read_ended_at_ > longest_read;
  return disk_works(now) && !hangs && !(e.reading && now - e.read_since > longest_read);
}

void kv_tiers::freshen(entry& e) {
  if (e.in_host_lru) host_lru_.splice(host_lru_.begin(), host_lru_, e.host_at);
  if (e.on_disk) disk_lru_.splice(disk_lru_.begin(), disk_lru_, e.disk_at);
}

bool kv_tiers::keeps() const {
  const std::lock_guard lock(mutex_);
  return open_ && limits_.keep;
}

bool kv_tiers::touch(const block_key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  freshen(found->second);
  return true;
}

host_block kv_tiers::take_place() {
  const std::lock_guard lock(mutex_);
  if (!open_) return nullptr;
  host_block place = pool_->take();
  if (!place) ++counts_.dropped;
  return place;
}

void kv_tiers::note_dropped() {
  const std::lock_guard lock(mutex_);
  if (open_) ++counts_.dropped;
}

bool kv_tiers::has(const block_key& key, const block_key& parent, std::span<const std::int32_t> own,
                   time_point now) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  const entry& e = found->second;
  return (e.bytes || readable(e, now)) && e.parent == parent &&
         std::equal(own.begin(), own.end(), e.tokens.begin(), e.tokens.end());
}

void kv_tiers::match(block_key parent, std::span<const std::int32_t> tokens, time_point now,
                     std::vector<block_key>& out) const {
  list(parent, tokens, now, false, out);
}

void kv_tiers::held(block_key parent, std::span<const std::int32_t> tokens, time_point now,
                    std::vector<block_key>& out) const {
  list(parent, tokens, now, true, out);
}

void kv_tiers::list(block_key parent, std::span<const std::int32_t> tokens, time_point now,
                    bool with_gaps, std::vector<block_key>& out) const {
  const auto width = static_cast<std::size_t>(limits_.block_tokens);
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  for (; tokens.size() >= width; tokens = tokens.subspan(width)) {
    const auto own = tokens.first(width);
    const block_key key = key_after(limits_.key, parent, own);
    if (has(key, parent, own, now))
      out.push_back(key);
    else if (!with_gaps)
      return;
    parent = key;
  }
}

void kv_tiers::keep_on_host(const block_key& key, entry& e) {
  if (limits_.host_blocks == 0 || e.in_host_lru) return;
  host_lru_.push_front(key);
  e.host_at = host_lru_.begin();
  e.in_host_lru = true;
}

void kv_tiers::put(std::vector<spilled_block> blocks, time_point now,
                   std::vector<write_order>& writes) {
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  const auto first = static_cast<std::ptrdiff_t>(writes.size());
  std::vector<block_key> keys;
  for (spilled_block& block : blocks) {
    keys.push_back(block.first.key);
    put_one(block, now, writes);
  }
  // The disk evicts the block that was written first, and a block is of no use without those before
  // it in its prefix. So blocks are written from the end of a prefix to its beginning, and the
  // beginning stays longest. With `keep` they are written from the beginning, so that a crash in
  // between leaves blocks that can be used.
  if (!limits_.keep) std::reverse(writes.begin() + first, writes.end());
  freshen_path(keys);
  shrink_host(now, writes);
}

void kv_tiers::put_one(spilled_block& block, time_point now, std::vector<write_order>& writes) {
  auto& [identity, bytes] = block;
  const auto [at, fresh] = entries_.try_emplace(identity.key);
  entry& e = at->second;
  if (!fresh) return;
  ++counts_.spilled;
  e.parent = identity.parent;
  e.tokens = std::move(identity.tokens);
  e.bytes = std::move(bytes);
  keep_on_host(at->first, e);
  if (limits_.keep || !e.in_host_lru)
    if (!order_write(at->first, e, now, writes) && e.in_host_lru) unwritten_.push_back(at->first);
  if (e.in_host_lru || e.writing) return report(at->first, e);
  ++counts_.dropped;
  entries_.erase(at);
}

void kv_tiers::shrink_host(time_point now, std::vector<write_order>& writes) {
  std::vector<entries::iterator> leaving; // evicted entries, children before parents
  for (; host_lru_.size() > static_cast<std::size_t>(limits_.host_blocks); host_lru_.pop_back())
    leaving.push_back(entries_.find(host_lru_.back()));
  const auto first = static_cast<std::ptrdiff_t>(writes.size());
  for (auto at = leaving.rbegin(); at != leaving.rend(); ++at) {
    entry& e = (*at)->second;
    // This flag keeps the entry alive until its turn in this loop, so it is not cleared for all
    // entries before the loop: order_write() may take an entry's place on disk away, and it erases
    // an entry that is then neither on disk nor flagged as being in host memory.
    e.in_host_lru = false;
    if (!e.on_disk && !e.writing) order_write((*at)->first, e, now, writes);
    if (!e.writing) e.bytes = nullptr;
    report((*at)->first, e);
    forget_if_nowhere(*at);
  }
  if (!limits_.keep) std::reverse(writes.begin() + first, writes.end());
}

bool kv_tiers::order_write(const block_key& key, entry& e, time_point now,
                           std::vector<write_order>& writes) {
  if (!disk_works(now) || n_writing_ >= most_writing(*pool_, limits_.host_blocks)) return false;
  const std::int32_t place = take_disk_place(now);
  if (place < 0) return false;
  e.place = place;
  e.writing = true;
  ++n_writing_;
  writes.push_back({{key, e.parent, e.tokens}, e.bytes, place});
  return true;
}

std::int32_t kv_tiers::take_disk_place(time_point now) {
  if (!aside_.empty() && now >= retry_aside_at_) {
    free_places_.insert(free_places_.end(), aside_.begin(), aside_.end());
    aside_.clear();
  }
  if (!free_places_.empty()) {
    const std::int32_t place = free_places_.back();
    free_places_.pop_back();
    return place;
  }
  if (n_places_ < limits_.disk_blocks && aside_.empty()) return n_places_++;
  for (auto oldest = disk_lru_.rbegin(); oldest != disk_lru_.rend(); ++oldest) {
    const auto at = entries_.find(*oldest);
    const std::int32_t place = at->second.place;
    if (at->second.reading) continue;
    disk_lru_.erase(at->second.disk_at);
    at->second.on_disk = false;
    at->second.place = -1;
    report(at->first, at->second);
    forget_if_nowhere(at);
    return place;
  }
  return -1;
}

void kv_tiers::forget_if_nowhere(entries::iterator at) {
  const entry& e = at->second;
  if (!e.in_host_lru && !e.on_disk && !e.writing) entries_.erase(at);
}

void kv_tiers::set_aside(std::int32_t place, time_point now) {
  aside_.push_back(place);
  retry_aside_at_ = now + disk_pause;
}

void kv_tiers::note_failure(time_point now) {
  if (++failures_in_a_row_ < most_failures_in_a_row) return;
  disk_off_until_ = now + disk_pause;
  failures_in_a_row_ = 0;
}

void kv_tiers::freshen(std::span<const block_key> prefix) {
  const std::lock_guard lock(mutex_);
  freshen_path(prefix);
}

void kv_tiers::freshen_path(std::span<const block_key> prefix) {
  for (std::size_t i = prefix.size(); i-- > 0;)
    if (const auto at = entries_.find(prefix[i]); at != entries_.end()) freshen(at->second);
}

kv_tiers::handed kv_tiers::fetch(const block_key& key, const reader& who, time_point now) {
  const std::lock_guard lock(mutex_);
  if (!open_) return {};
  const auto at = entries_.find(key);
  if (at == entries_.end()) return {};
  entry& e = at->second;
  if (e.bytes) {
    ++counts_.from_host;
    return {whereabouts::on_host, e.bytes, {}};
  }
  if (!readable(e, now)) return {};
  if (e.reading) {
    e.readers.push_back(who);
    return {whereabouts::on_its_way, nullptr, {}};
  }
  host_block to = pool_->take();
  if (!to) return {};
  e.readers.assign(1, who);
  e.reading = true;
  e.read_since = now;
  if (n_reading_++ == 0) read_ended_at_ = now;
  return {whereabouts::on_disk, nullptr, {key, e.place, std::move(to)}};
}

std::vector<kv_tiers::reader> kv_tiers::read_done(const read_order& read, bool good, time_point now,
                                                  std::vector<write_order>& writes) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(read.key);
  TWILL_ASSERT(at != entries_.end() && at->second.reading, "a block stays while it is read");
  entry& e = at->second;
  e.reading = false;
  --n_reading_;
  read_ended_at_ = now;
  std::vector<reader> waited = std::exchange(e.readers, {});
  if (good) {
    failures_in_a_row_ = 0;
    counts_.from_disk += waited.size();
    if (e.bytes || limits_.host_blocks == 0) return waited;
    e.bytes = read.to;
    report(read.key, e);
    keep_on_host(read.key, e);
    shrink_host(now, writes);
    return waited;
  }
  ++counts_.failed_reads;
  note_failure(now);
  disk_lru_.erase(e.disk_at);
  e.on_disk = false;
  set_aside(read.place, now);
  e.place = -1;
  report(at->first, e);
  forget_if_nowhere(at);
  return waited;
}

void kv_tiers::write_done(const write_order& write, bool good, time_point now,
                          std::vector<write_order>& writes) {
  const std::lock_guard lock(mutex_);
  --n_writing_;
  const auto found = entries_.find(write.identity.key);
  TWILL_ASSERT(found != entries_.end() && found->second.writing,
               "a block stays while it is written");
  entry& e = found->second;
  e.writing = false;
  if (good) {
    failures_in_a_row_ = 0;
    ++counts_.written;
    disk_lru_.push_front(found->first);
    e.disk_at = disk_lru_.begin();
    e.on_disk = true;
  } else {
    ++counts_.failed_writes;
    note_failure(now);
    set_aside(write.place, now);
    e.place = -1;
  }
  if (!e.in_host_lru) e.bytes = nullptr;
  report(found->first, e);
  forget_if_nowhere(found);
  while (!unwritten_.empty()) {
    const auto next = entries_.find(unwritten_.front());
    const bool waits = next != entries_.end() && next->second.in_host_lru &&
                       !next->second.on_disk && !next->second.writing;
    if (waits && !order_write(next->first, next->second, now, writes)) {
      if (n_writing_ == 0) unwritten_.clear(); // the disk takes no writes now
      return;
    }
    unwritten_.pop_front();
  }
}

void kv_tiers::adopt(std::vector<kept_block> blocks, std::int32_t n_places) {
  const std::lock_guard lock(mutex_);
  n_places_ = n_places;
  std::vector<bool> filled(static_cast<std::size_t>(n_places), false);
  for (kept_block& kept : blocks) {
    const auto [at, fresh] = entries_.try_emplace(kept.identity.key);
    if (!fresh) continue; // the block is in the file twice, and one copy is enough
    entry& e = at->second;
    e.parent = kept.identity.parent;
    e.tokens = std::move(kept.identity.tokens);
    e.place = kept.place;
    e.on_disk = true;
    disk_lru_.push_front(at->first);
    e.disk_at = disk_lru_.begin();
    filled[static_cast<std::size_t>(kept.place)] = true;
  }
  for (std::int32_t place = n_places; place-- > 0;)
    if (!filled[static_cast<std::size_t>(place)]) free_places_.push_back(place);
}

tier_counts kv_tiers::counts() const {
  const std::lock_guard lock(mutex_);
  tier_counts now = counts_;
  now.host_blocks = static_cast<std::int64_t>(host_lru_.size());
  now.disk_blocks = static_cast<std::int64_t>(disk_lru_.size());
  return now;
}

/// The ledger lists who has taken which resource (config/base/ledger.hpp). The places in host
/// memory and on disk that an indexed block has are listed under "KV tiers", and those of a block
/// that is being read or written under "the disk of KV tiers". Places that a step under way has
/// taken are not listed; when no request runs, there are none.
void kv_tiers::account(ledger& to) const {
  const std::string host_places = "places of KV blocks in host memory",
                    disk_places = "places of KV blocks on disk", kept = "KV tiers",
                    disk = "the disk of KV tiers", reads = "KV blocks that are read",
                    writes = "KV blocks that are written";
  const std::lock_guard lock(mutex_);
  to.exists(kept, true);
  to.exists(disk, true);
  if (pool_) to.taken(host_places, pool_->total() - pool_->free());
  to.taken(disk_places, n_places_ - static_cast<std::int64_t>(free_places_.size() + aside_.size()));
  to.taken(reads, n_reading_);
  to.taken(writes, n_writing_);
  for (const auto& [key, e] : entries_) {
    if (e.bytes) to.held(host_places, e.in_host_lru ? kept : disk);
    if (e.on_disk || e.writing) to.held(disk_places, e.on_disk ? kept : disk);
    if (e.reading) to.held(host_places, disk);
    if (e.reading) to.held(reads, disk);
    if (e.writing) to.held(writes, disk);
  }
}

bool kv_tiers::consistent() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> owners(static_cast<std::size_t>(n_places_), 0);
  const auto own = [&](std::int32_t place) { ++owners[static_cast<std::size_t>(place)]; };
  for (const std::int32_t place : free_places_)
    own(place);
  for (const std::int32_t place : aside_)
    own(place);
  std::size_t on_host = 0, on_disk = 0, writing = 0, reading = 0;
  for (const auto& [key, e] : entries_) {
    if (e.on_disk || e.writing) own(e.place);
    if (e.on_disk && e.writing) return false;
    if ((e.in_host_lru || e.writing) != static_cast<bool>(e.bytes)) return false;
    if (!e.in_host_lru && !e.on_disk && !e.writing) return false;
    if (e.reading && (!e.on_disk || e.readers.empty())) return false;
    on_host += e.in_host_lru ? 1 : 0;
    on_disk += e.on_disk ? 1 : 0;
    writing += e.writing ? 1 : 0;
    reading += e.reading ? 1 : 0;
  }
  return std::all_of(owners.begin(), owners.end(), [](int n) { return n == 1; }) &&
         on_host == host_lru_.size() && on_disk == disk_lru_.size() &&
         writing == static_cast<std::size_t>(n_writing_) &&
         reading == static_cast<std::size_t>(n_reading_) && n_places_ <= limits_.disk_blocks &&
         on_host <= static_cast<std::size_t>(limits_.host_blocks);
}

} // namespace twill::actors
