// kv_event_log: brings what the allocator and the tiers report of a model's KV blocks into one
// order, and makes events of it when the publisher takes them (actors/port/kv_events.hpp).
//
// Threads: any. A report is a copy into a buffer under a mutex; the reader's thread finds out what
// changed (published_blocks). Where no reader comes before most_reports are in the buffer, who
// reports does that, which takes some milliseconds. The log outlives engines: a model that is put
// to sleep and loaded again goes on with the same one.
//
// Memory: some 300 bytes and the ids of each block that is there, also of blocks that are not
// published.
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
  /// Events that wait at most. What is more is dropped, and the reader begins anew.
  static constexpr std::size_t most_waiting = 65536;
  static constexpr std::size_t most_reports = 8192;

  explicit kv_event_log(std::size_t most = most_waiting);

  /// An engine begins, or its allocator does: nothing is there. From now on prefixes of `scope`
  /// are published; without one, none are.
  void begin(std::optional<std::uint64_t> scope);
  /// The engine has ended: what is reported from now on is ignored.
  void end();
  /// Prompts are of this scope from now on. Blocks of another scope can no longer be found, so they
  /// are cleared.
  void use_scope(std::optional<std::uint64_t> scope);

  /// A medium has the block, or has it no more.
  void stored(const block_identity& block, kv_medium medium);
  void removed(const block_key& block, kv_medium medium);
  /// The device has no block any more.
  void device_is_empty();

  /// Names blocks where there are no tiers to do so.
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
    std::vector<std::int32_t> tokens; ///< of stored blocks, one after another
  };

  void add(const report& one, const std::vector<std::int32_t>& tokens = {});
  void digest();
  void digest_taken();
  void note(kv_event one);
  void wake();

  const hash_key key_ = draw_hash_key();
  const std::size_t most_;

  std::mutex reader_; ///< taken before the other; guards what follows, up to it
  published_blocks blocks_;
  report_buffer digested_;
  std::size_t next_ = 0; ///< of digested_, what comes next
  std::vector<kv_event> waiting_;
  bool full_ = false; ///< the next answer begins anew
  bool lost_ = false; ///< since the last answer

  std::mutex mutex_;
  report_buffer reported_;
  std::optional<std::uint64_t> scope_;
  bool open_ = false;
  bool woken_ = false;
  std::function<void()> waker_;
};

} // namespace twill::actors
