// kv_event_log: collects the reports of the allocator and of the tiers (host memory and disk) about
// a model's KV blocks in one order, and turns them into events when the publisher takes them
// (actors/port/kv_events.hpp).
//
// Threads: any. A report is copied into a buffer under a mutex; the reader's thread later
// determines what changed (published_blocks). If most_reports reports are in the buffer before a
// reader comes, the reporting thread does that work itself, which takes some milliseconds. The log
// outlives engines: a model that is put to sleep and loaded again continues with the same log.
//
// Memory: about 300 bytes and the token ids for each block that the device, host memory or the disk
// has, including blocks that are not announced to routers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/kv/block_key.hpp"
#include "actors/kv/cache_scope.hpp"
#include "actors/kv/published_blocks.hpp"
#include "actors/kv/spilled_block.hpp"
#include "actors/port/kv_events.hpp"

namespace twill::actors {

class kv_event_log final : public kv_event_source {
public:
  /// The most events that may wait. When there are more, they are dropped, and the reader gets the
  /// whole current state instead (kv_events::anew).
  static constexpr std::size_t most_waiting = 65536;
  static constexpr std::size_t most_reports = 8192;

  explicit kv_event_log(std::size_t most = most_waiting);

  /// Must be called when an engine or its KV allocator begins. The log then forgets the blocks of
  /// every medium (device, host memory, disk); tiers that still have blocks must report them again.
  /// From now on the blocks of the cache scope `scope` (see cache_scope.hpp) are announced to
  /// routers; with nullopt, none are.
  void begin(std::optional<std::uint64_t> scope);
  /// The engine has ended: later reports are ignored.
  void end();
  /// From now on prompts have this cache scope (see cache_scope.hpp). No prompt can find cached
  /// blocks of another scope any more, so the log begins anew with a `cleared` event, after which
  /// routers know no block.
  void use_scope(std::optional<std::uint64_t> scope);

  /// Reports that a medium has the block, or no longer has it.
  void stored(const block_identity& block, kv_medium medium);
  void removed(const block_key& block, kv_medium medium);
  /// Reports that the device no longer has any block.
  void device_is_empty();

  /// The key with which blocks are named if there are no tiers.
  const hash_key& key() const { return key_; }

  kv_events take(bool everything) override;
  void on_events(std::function<void()> waker) override;

private:
  enum class report_kind : std::uint8_t { begin, stored, removed, device_is_empty };
  struct report {
    report_kind kind = report_kind::begin;
    kv_medium medium = kv_medium::device;
    block_key block, parent;
    std::optional<std::uint64_t> scope;
    std::size_t first_token = 0, n_tokens = 0;
  };
  struct report_buffer {
    std::vector<report> reports;
    std::vector<std::int32_t> tokens; ///< tokens of stored blocks, concatenated
  };

  void add(const report& one, const std::vector<std::int32_t>& tokens = {});
  void digest();
  void digest_taken();
  void note(kv_event one);
  void wake();

  const hash_key key_ = draw_hash_key();
  const std::size_t most_;

  std::mutex reader_; ///< locked before mutex_; guards the members between it and mutex_
  published_blocks blocks_;
  report_buffer digested_;
  std::size_t next_ = 0; ///< index of the next report in digested_
  std::vector<kv_event> waiting_;
  bool full_ = false; ///< the next answer begins anew
  bool lost_ = false; ///< events were dropped since the last answer

  std::mutex mutex_;
  report_buffer reported_;
  std::optional<std::uint64_t> scope_;
  bool open_ = false;
  bool woken_ = false;
  std::function<void()> waker_;
};

} // namespace twill::actors
