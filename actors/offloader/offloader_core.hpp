// offloader_core: the KV tiers with their disk: opens them, writes what leaves host memory, reads
// what is fetched, and answers each fetch once.
//
// Thread safety: one thread at a time (the offloader's), but for tiers() and stop(). The file is
// opened, read, written and looked through by the I/O threads, of which streamed weights have as
// many as without it; a fetch is answered on one of them, or on the caller's. Fetches take turns:
// those that were asked first are read first, no more than most_reads blocks at once, and
// prefetches only while no fetch waits. A block that several want is read once. Where the disk
// fails, a fetch brings fewer blocks; where it hangs, an answer comes late or never, and nobody
// waits for it for longer than they like. At most two blocks are written at once, and a read that
// comes meanwhile waits for no further one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/offloader/block_file.hpp"
#include "actors/offloader/kv_tiers.hpp"
#include "models/offload/streams/tier_resources.hpp"

namespace twill::actors {

struct tier_options {
  std::int64_t block_bytes = 0;
  std::int32_t block_tokens = 16;
  std::int32_t device_blocks = 0; ///< bounds what is on its way between the tiers at once
  std::int64_t host_bytes = 0;
  std::int64_t disk_bytes = 0;
  std::string disk_dir;
  bool keep = false;
  std::string model_path;
  std::string fingerprint; ///< all that the bytes of a block depend on beside its tokens
  /// Opens a store in place of a file in disk_dir; for tests.
  std::function<models::result<std::unique_ptr<models::offload::disk_store>>()> open_store;

  bool any() const { return block_bytes > 0 && (host_bytes > 0 || disk_bytes > 0); }
};

class offloader_core : public std::enable_shared_from_this<offloader_core> {
public:
  static constexpr std::int32_t most_reads = 32;   ///< blocks that are read at once
  static constexpr std::int32_t most_prefetch = 4; ///< of these, while nobody waits for any
  static constexpr std::size_t most_fetches = 256; ///< under way; others are answered with nothing

  using time_point = std::chrono::steady_clock::time_point;
  struct fetched {
    std::vector<host_block> blocks; ///< the first ones of those that were asked for, perhaps none
    /// Since the fetch was asked, or since the end of the one before it, where that was later.
    double seconds = 0;
  };
  using answer = std::function<void(fetched)>;

  /// Knows the budgets at once; the tiers are empty until open(). `options.host_bytes` are taken
  /// from the budget already. A shared_ptr must own it.
  offloader_core(tier_options options, std::shared_ptr<models::offload::tier_resources> resources);
  ~offloader_core() { stop(); }

  /// Has the memory taken, the file opened and read what it keeps; the tiers can be used once that
  /// is done. A tier that cannot be had is left out with a line in the log. A second call does
  /// nothing.
  void open();
  const std::shared_ptr<kv_tiers>& tiers() const { return tiers_; }

  /// Blocks of a prefix in their order.
  void spill(std::vector<std::pair<block_identity, host_block>> blocks);
  /// No fetch is answered after this, and nothing more is written. Any thread.
  void stop();
  /// What has not been read by `until` is not waited for, as long as any read ends.
  void fetch(std::vector<block_key> keys, time_point until, answer done);
  /// Brings blocks to host memory when there is nothing else to do; what is too much is ignored.
  void prefetch(const std::vector<block_key>& keys);

private:
  struct disk;
  void open_now();
  std::shared_ptr<disk> opened() const;
  void write(std::vector<kv_tiers::write_order> orders);

  tier_options options_;
  std::shared_ptr<models::offload::tier_resources> resources_;
  std::shared_ptr<models::offload::io_user> io_; ///< null where no tier was asked for
  std::shared_ptr<kv_tiers> tiers_;
  mutable std::mutex stop_mutex_; ///< of disk_ between open() and stop(), and of stopped_
  std::shared_ptr<disk> disk_;
  bool stopped_ = false;
  bool opens_ = false;
};

} // namespace twill::actors
