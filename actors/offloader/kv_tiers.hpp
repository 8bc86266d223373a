// kv_tiers: which KV blocks are in host memory and on disk, and which of them leave when a tier is
// full. It is the index and the budgets; who reads and writes the disk is offloader_core.
//
// Thread safety: every function takes the one mutex and does no I/O. The allocator asks what is
// there and takes places for what it evicts, the offloader does all the rest. Both tiers are LRU by
// block; a fetch touches a prefix from its end, so that children leave before their parents. A
// block that is being written to disk or was handed to a reader keeps its host memory until both
// are done; a place on disk that is being read is not given away. A block is read once at a time,
// however many wait for it.
//
// Invariants: places of the disk = free + set aside + filled + being written; host memory in the
// index <= the host budget, beside what is on its way to disk; no place on disk has two blocks; a
// place is readable only after it was written whole.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/kv/block_key.hpp"
#include "actors/kv/kv_event_log.hpp"
#include "actors/kv/spilled_block.hpp"
#include "actors/offloader/host_pool.hpp"
#include "config/base/ledger.hpp"

namespace twill::actors {

/// Bytes and blocks that moved between tiers, since the start.
struct tier_counts {
  std::int64_t host_blocks = 0, disk_blocks = 0; ///< in the index now
  std::uint64_t spilled = 0;                     ///< blocks that came from the device
  std::uint64_t dropped = 0;       ///< blocks that left the device and found no host memory
  std::uint64_t from_host = 0;     ///< blocks handed out that were in host memory
  std::uint64_t from_disk = 0;     ///< blocks handed out that were read from disk
  std::uint64_t written = 0;       ///< blocks written to disk
  std::uint64_t failed_reads = 0;  ///< blocks that the disk did not give back as they were written
  std::uint64_t failed_writes = 0; ///< blocks that the disk did not take
};

class kv_tiers {
public:
  using time_point = std::chrono::steady_clock::time_point;
  /// After a failure the place that failed is set aside for so long, and after several in a row the
  /// whole disk.
  static constexpr std::chrono::seconds disk_pause{10};
  static constexpr int most_failures_in_a_row = 4;
  /// A disk of which no read has ended for so long, while one is under way, hangs: its blocks are
  /// not found until one ends. A block whose own read takes so long is not found either.
  static constexpr std::chrono::seconds longest_read{2};

  struct limits {
    std::int32_t host_blocks = 0;
    std::int32_t disk_blocks = 0;
    std::int32_t block_tokens = 16;
    /// Every computed block goes to disk, so that it outlives the process; otherwise only blocks
    /// that host memory has no room for.
    bool keep = false;
    std::int64_t block_bytes = 0;
    hash_key key;
  };
  /// The pool may come later, with open().
  explicit kv_tiers(const limits& l) : limits_(l) {}

  /// Before open(): what host memory and the disk have is reported there. After the
  /// log begins again, report_all() reports every block once more.
  void report_to(std::shared_ptr<kv_event_log> log);
  void report_all() const;
  /// From now on blocks are taken and handed out.
  void open(std::shared_ptr<host_pool> pool);
  /// Before open(): there is no disk after all.
  void lose_disk();
  /// The model has changed: nothing is taken or handed out any more.
  void retire();
  bool keeps() const;
  bool has_host() const { return limits_.host_blocks > 0; }        ///< as a tier
  std::int32_t host_blocks() const { return limits_.host_blocks; } ///< that it may hold
  std::int64_t block_bytes() const { return limits_.block_bytes; }
  const hash_key& key() const { return limits_.key; }

  // For the allocator.

  /// Whether a tier has the block or it is on its way there; it counts as used now.
  bool touch(const block_key& key);
  /// Host memory for a block that leaves the device; null when there is none.
  host_block take_place();
  /// A block that left the device was not taken at all.
  void note_dropped();
  /// The keys of the blocks that tiers have of `tokens`, which follow block `parent`. Appends to
  /// `out`; stops at the first block that is nowhere.
  void match(block_key parent, std::span<const std::int32_t> tokens, time_point now,
             std::vector<block_key>& out) const;
  /// The keys of all blocks of `tokens` that tiers have, whoever has those before them: the
  /// beginning of a prefix stays on the device for longest. Appends to `out`.
  void held(block_key parent, std::span<const std::int32_t> tokens, time_point now,
            std::vector<block_key>& out) const;

  // For the offloader.

  struct write_order {
    block_identity identity;
    host_block bytes;
    std::int32_t place = -1;
  };
  /// Who waits for a block that is being read: a fetch, and which of its blocks that is.
  struct reader {
    std::uint64_t fetch = 0;
    std::size_t index = 0;
  };
  struct read_order {
    block_key key;
    std::int32_t place = -1;
    host_block to;
  };
  using spilled_block = std::pair<block_identity, host_block>;
  /// The bytes of these blocks have reached host memory; blocks of a prefix follow each other.
  /// Appends what is to be written to disk now. Where that is too much at once, the beginnings of
  /// prefixes are written, since what follows is of no use without them.
  void put(std::vector<spilled_block> blocks, time_point now, std::vector<write_order>& writes);
  /// The blocks of a prefix are fetched: they count as used now, the first of them last.
  void freshen(std::span<const block_key> prefix);
  enum class whereabouts : std::uint8_t {
    nowhere,    ///< or there is no host memory to read it into
    on_host,    ///< `bytes` are the block's
    on_its_way, ///< the reader is told by the read_done() of a read under way
    on_disk     ///< `read` is to be done, and the reader is told by its read_done()
  };
  struct handed {
    whereabouts where = whereabouts::nowhere;
    host_block bytes;
    read_order read;
  };
  handed fetch(const block_key& key, const reader& who, time_point now);
  /// Blocks that were read stay in host memory when that is a tier; this may move others out.
  /// Returns who has waited for the block.
  std::vector<reader> read_done(const read_order& read, bool good, time_point now,
                                std::vector<write_order>& writes);
  void write_done(const write_order& write, bool good, time_point now,
                  std::vector<write_order>& writes);
  /// Before open(): a file of n_places has these blocks, the oldest first.
  struct kept_block {
    block_identity identity;
    std::int32_t place = -1;
  };
  void adopt(std::vector<kept_block> blocks, std::int32_t n_places);

  tier_counts counts() const;
  /// Places of host memory and of the disk. Looks at every block of the index.
  void account(ledger& to) const;
  /// Whether the invariants hold; for tests.
  bool consistent() const;

private:
  using lru = std::list<block_key>; ///< the first was used last
  struct entry {
    block_key parent;
    std::vector<std::int32_t> tokens;
    host_block bytes;        ///< in host memory: in the LRU of the host, or being written
    std::int32_t place = -1; ///< on disk, or being written there
    bool in_host_lru = false, on_disk = false, writing = false, reading = false;
    time_point read_since{};     ///< while it is being read
    std::vector<reader> readers; ///< while it is being read
    lru::iterator host_at, disk_at;
  };
  using entries = std::unordered_map<block_key, entry, block_key_hash>;

  bool disk_works(time_point now) const {
    return limits_.disk_blocks > 0 && now >= disk_off_until_;
  }
  bool readable(const entry& e, time_point now) const;
  /// Whether a tier has the block: its tokens and its parent are compared too.
  bool has(const block_key& key, const block_key& parent, std::span<const std::int32_t> own,
           time_point now) const;
  void list(block_key parent, std::span<const std::int32_t> tokens, time_point now, bool with_gaps,
            std::vector<block_key>& out) const;
  void freshen(entry& e);
  void freshen_path(std::span<const block_key> prefix);
  void put_one(spilled_block& block, time_point now, std::vector<write_order>& writes);
  void keep_on_host(const block_key& key, entry& e);
  void shrink_host(time_point now, std::vector<write_order>& writes);
  bool order_write(const block_key& key, entry& e, time_point now,
                   std::vector<write_order>& writes);
  std::int32_t take_disk_place(time_point now);
  void forget_if_nowhere(entries::iterator at);
  /// To be called after any change of where a block can be read from, and before it is erased.
  void report(const block_key& key, const entry& e) const;
  void report_entries() const;
  void set_aside(std::int32_t place, time_point now);
  void note_failure(time_point now);

  mutable std::mutex mutex_;
  limits limits_;
  std::shared_ptr<host_pool> pool_;
  bool open_ = false;
  entries entries_;
  lru host_lru_, disk_lru_;
  std::int32_t n_places_ = 0; ///< of the disk, so far
  std::vector<std::int32_t> free_places_;
  std::vector<std::int32_t> aside_; ///< places that failed
  std::int32_t n_writing_ = 0, n_reading_ = 0;
  time_point read_ended_at_{};      ///< or began, when none was under way
  std::deque<block_key> unwritten_; ///< to be kept, and too many were on their way already
  int failures_in_a_row_ = 0;
  time_point retry_aside_at_{}, disk_off_until_{};
  tier_counts counts_;
  std::shared_ptr<kv_event_log> log_; ///< null: no KV events are made
};

} // namespace twill::actors
