// kv_tiers: the index of the KV blocks in host memory and on disk (the two tiers). It also decides
// which blocks leave when a tier is full. It does no I/O: offloader_core reads and writes the disk.
//
// Thread safety: every function locks the one mutex and does no I/O. The allocator looks blocks up
// and takes host memory for the blocks that it evicts; all other calls come from the offloader.
//
// Both tiers evict the least recently used block. A fetch marks the blocks of a prefix as used from
// its end to its beginning, so that children are evicted before their parents. A block keeps its
// host memory while it is being written to disk and while a reader holds it. A place on disk has
// room for one block, and is not reused while it is being read. At most one read of a block is
// under way, however many fetches wait for the block.
//
// Invariants: places of the disk = free + set aside after failures + filled + being written; host
// memory of indexed blocks <= the budget of host memory, not counting blocks on their way to disk;
// no place on disk has two blocks; a place is read only after it was written completely.
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
  std::int64_t host_blocks = 0, disk_blocks = 0; ///< blocks of each tier that are in the index now
  std::uint64_t spilled = 0;                     ///< blocks that came from the device
  std::uint64_t dropped = 0; ///< blocks evicted from the device for which there was no host memory
  std::uint64_t from_host = 0; ///< blocks handed to fetches from host memory
  std::uint64_t from_disk = 0; ///< blocks handed to fetches after a read from disk
  std::uint64_t written = 0;   ///< blocks written to disk
  /// failed reads: the disk did not return the block as it was written
  std::uint64_t failed_reads = 0;
  std::uint64_t failed_writes = 0; ///< failed writes
};

class kv_tiers {
public:
  using time_point = std::chrono::steady_clock::time_point;
  /// After a failed read or write, the place on disk at which it failed is not used for this long.
  /// After several failures in a row, the whole disk is not used for this long.
  static constexpr std::chrono::seconds disk_pause{10};
  static constexpr int most_failures_in_a_row = 4;
  /// The disk counts as hanging if a read is under way and none has ended for this long; then
  /// blocks that are only on disk are not found until a read ends. A block whose own read takes
  /// this long is not found either.
  static constexpr std::chrono::seconds longest_read{2};

  struct limits {
    std::int32_t host_blocks = 0;
    std::int32_t disk_blocks = 0;
    std::int32_t block_tokens = 16;
    /// If set, every computed block is written to disk, so that it outlives the process. Otherwise
    /// only blocks that do not fit host memory are written.
    bool keep = false;
    std::int64_t block_bytes = 0;
    hash_key key;
  };
  /// The pool of host memory is passed later, to open().
  explicit kv_tiers(const limits& l) : limits_(l) {}

  /// Call before open(): KV events of host memory and disk go to `log`. After a later
  /// kv_event_log::begin(), report_all() reports every block once more.
  void report_to(std::shared_ptr<kv_event_log> log);
  void report_all() const;
  /// From now on the tiers take blocks and hand them out.
  void open(std::shared_ptr<host_pool> pool);
  /// Call before open() if the disk tier cannot be used.
  void lose_disk();
  /// The model has changed: from now on no block is taken or handed out.
  void retire();
  bool keeps() const;
  bool has_host() const { return limits_.host_blocks > 0; } ///< whether host memory is a tier
  /// the most blocks that the host tier may hold
  std::int32_t host_blocks() const { return limits_.host_blocks; }
  std::int64_t block_bytes() const { return limits_.block_bytes; }
  const hash_key& key() const { return limits_.key; }

  // Functions for the allocator.

  /// Whether the block is in a tier or on its way to one. If so, the block counts as used now.
  bool touch(const block_key& key);
  /// Returns host memory for a block that leaves the device; null if there is none.
  host_block take_place();
  /// Counts a block that left the device and was not offered to the tiers at all.
  void note_dropped();
  /// Looks up the blocks of `tokens`, the first of which follows the block `parent`. Appends to
  /// `out` the keys of the blocks that are in host memory or on disk, and stops at the first block
  /// that is in neither.
  void match(block_key parent, std::span<const std::int32_t> tokens, time_point now,
             std::vector<block_key>& out) const;
  /// As match(), but passes over blocks that are neither in host memory nor on disk: they may still
  /// be on the device, where the beginning of a prefix stays longest. Appends to `out`.
  void held(block_key parent, std::span<const std::int32_t> tokens, time_point now,
            std::vector<block_key>& out) const;

  // Functions for the offloader.

  struct write_order {
    block_identity identity;
    host_block bytes;
    std::int32_t place = -1;
  };
  /// One waiting use of a block that is being read: the fetch, and the block's index in that fetch.
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
  /// Adds blocks whose bytes have been copied to host memory; blocks of one prefix must be
  /// consecutive. Appends the blocks that are to be written to disk now to `writes`. If there are
  /// more than may be written at once, those at the beginning of a prefix are taken, since later
  /// blocks are of no use without them.
  void put(std::vector<spilled_block> blocks, time_point now, std::vector<write_order>& writes);
  /// Marks the blocks of a fetched prefix as used now, the first block last.
  void freshen(std::span<const block_key> prefix);
  enum class whereabouts : std::uint8_t {
    nowhere,    ///< no tier has the block, or there is no host memory to read it into
    on_host,    ///< `bytes` hold the block
    on_its_way, ///< a read is under way; its read_done() returns the reader
    on_disk     ///< the caller must carry out `read`; its read_done() returns the reader
  };
  struct handed {
    whereabouts where = whereabouts::nowhere;
    host_block bytes;
    read_order read;
  };
  handed fetch(const block_key& key, const reader& who, time_point now);
  /// Reports the end of a read. `good` says whether the read succeeded. If blocks may be kept in
  /// host memory, the block stays there. Other blocks may be evicted for it; those of them that
  /// must be written to disk are appended to `writes`. Returns the readers that waited for the
  /// block.
  std::vector<reader> read_done(const read_order& read, bool good, time_point now,
                                std::vector<write_order>& writes);
  void write_done(const write_order& write, bool good, time_point now,
                  std::vector<write_order>& writes);
  /// A block that an existing file of blocks holds.
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
  using lru = std::list<block_key>; ///< most recently used block first
  struct entry {
    block_key parent;
    std::vector<std::int32_t> tokens;
    /// set while the block is in host memory, which is while it is in the host LRU or being written
    host_block bytes;
    /// place on disk that holds the block or to which it is being written; -1: none
    std::int32_t place = -1;
    bool in_host_lru = false, on_disk = false, writing = false, reading = false;
    time_point read_since{};     ///< start of the read, while the block is being read
    std::vector<reader> readers; ///< waiting uses of the block, while it is being read
    lru::iterator host_at, disk_at;
  };
  using entries = std::unordered_map<block_key, entry, block_key_hash>;

  bool disk_works(time_point now) const {
    return limits_.disk_blocks > 0 && now >= disk_off_until_;
  }
  bool readable(const entry& e, time_point now) const;
  /// Whether the block is in host memory or on disk. A matching key is not enough: the block's
  /// tokens and parent are compared too.
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
  /// Reports to the KV event log which media (host memory, disk) hold the block. Must be called
  /// after each change of these media, and before the entry is erased.
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
  std::int32_t n_places_ = 0; ///< number of disk places that were used so far
  std::vector<std::int32_t> free_places_;
  /// places whose read or write failed; they are not used for a while
  std::vector<std::int32_t> aside_;
  std::int32_t n_writing_ = 0, n_reading_ = 0;
  /// when a read last ended, or when one began while none was under way
  time_point read_ended_at_{};
  /// blocks still to be written to disk; too many writes were under way when they came
  std::deque<block_key> unwritten_;
  int failures_in_a_row_ = 0;
  time_point retry_aside_at_{}, disk_off_until_{};
  tier_counts counts_;
  std::shared_ptr<kv_event_log> log_; ///< null: no KV events are made
};

} // namespace twill::actors
