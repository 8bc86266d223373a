// offloader_core: the KV blocks in host memory and on disk (the tiers), with the I/O for the disk.
// It opens the tiers, writes blocks that leave host memory to disk, reads the blocks that are
// fetched, and answers each fetch once.
//
// Thread safety: one thread at a time (the offloader's), except for tiers() and stop(). The I/O
// threads open, read, write and scan the file of blocks. KV blocks take none of the I/O threads
// that are meant for streamed weights. A fetch is answered on one of the I/O threads or on the
// caller's thread.
//
// Fetches are read in the order in which they were asked for, at most most_reads blocks at once.
// Prefetches are read only while no fetch waits. A block that several fetches need is read once. If
// the disk fails, a fetch brings fewer blocks. If the disk hangs, the answer comes late or never,
// and the asking side must give up by itself. At most two blocks are written at once, and a new
// read waits for no more than the writes under way.
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
  /// blocks of the device; bounds the blocks that move between the tiers at once
  std::int32_t device_blocks = 0;
  std::int64_t host_bytes = 0;
  std::int64_t disk_bytes = 0;
  std::string disk_dir;
  bool keep = false;
  std::string model_path;
  std::string fingerprint; ///< identifies all that the bytes of a block depend on beside its tokens
  /// For tests: opens a store that replaces the file in disk_dir.
  models::offload::store_opener open_store;

  bool any() const { return block_bytes > 0 && (host_bytes > 0 || disk_bytes > 0); }
};

class offloader_core : public std::enable_shared_from_this<offloader_core> {
public:
  static constexpr std::int32_t most_reads = 32; ///< blocks that are read at once
  /// the most of these reads for prefetches, which run while no fetch waits
  static constexpr std::int32_t most_prefetch = 4;
  /// the most fetches under way; further fetches are answered with no blocks
  static constexpr std::size_t most_fetches = 256;

  using time_point = std::chrono::steady_clock::time_point;
  struct fetched {
    std::vector<host_block> blocks; ///< the first ones of the blocks asked for, perhaps none
    /// Duration of the fetch, counted from its start or from the end of the fetch before it,
    /// whichever was later.
    double seconds = 0;
  };
  using answer = std::function<void(fetched)>;

  /// The sizes of the tiers (host memory and disk) are known at once, but the tiers stay empty
  /// until open(). The caller must have taken `options.host_bytes` from the budget of host memory
  /// already. The object must be owned by a shared_ptr.
  offloader_core(tier_options options, std::shared_ptr<models::offload::tier_resources> resources);
  ~offloader_core() { stop(); }

  /// Starts, on an I/O thread, to allocate the memory, open the file and read the headers of the
  /// blocks that it keeps. Both tiers (host memory and disk) can be used once that is done. A tier
  /// that cannot be opened is not used, and the log says so. A second call does nothing.
  void open();
  const std::shared_ptr<kv_tiers>& tiers() const { return tiers_; }

  /// Takes blocks that were copied from the device to host memory. Blocks of one prefix must be in
  /// their order.
  void spill(std::vector<std::pair<block_identity, host_block>> blocks);
  /// After this call no fetch is answered and nothing more is written. Any thread.
  void stop();
  /// Brings blocks to host memory and calls `done`. Blocks that have not been read by `until` are
  /// not waited for; the deadline is noticed whenever a read ends.
  void fetch(std::vector<block_key> keys, time_point until, answer done);
  /// Brings blocks to host memory while no fetch waits. A request for too many blocks is ignored.
  void prefetch(const std::vector<block_key>& keys);

private:
  struct disk;
  void open_now();
  std::shared_ptr<disk> opened() const;
  void write(std::vector<kv_tiers::write_order> orders);

  tier_options options_;
  std::shared_ptr<models::offload::tier_resources> resources_;
  std::shared_ptr<models::offload::io_user> io_; ///< null: no tier is configured
  std::shared_ptr<kv_tiers> tiers_;
  mutable std::mutex stop_mutex_; ///< guards disk_ between open() and stop(), and stopped_
  std::shared_ptr<disk> disk_;
  bool stopped_ = false;
  bool opens_ = false;
};

} // namespace twill::actors
