// block_file: a file of KV blocks, divided into places of equal size. Each place has a header that
// says which block it holds and for which model. The header has a checksum of its own, and another
// one of the block's bytes. The file therefore needs no index, and the checksums reveal a place
// that a crash left half written.
//
// Thread safety: any number of threads may call at once, for different places. Nothing is synced to
// the disk (fsync): the checksums also reveal what a power failure has left incomplete.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/kv/block_key.hpp"
#include "actors/kv/spilled_block.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::actors {

class block_file {
public:
  /// `fingerprint` identifies everything that the bytes of a block depend on beside its key.
  block_file(std::unique_ptr<models::offload::disk_store> store, std::int64_t block_bytes,
             const std::string& fingerprint);

  /// `bytes` must be memory of a host_pool: this function overwrites the header page before it.
  models::result<nothing> write(std::int32_t place, const block_identity& identity,
                                const host_block& bytes);
  /// Fails if the place does not hold block `key` exactly as it was written.
  models::result<nothing> read(std::int32_t place, const block_key& key, const host_block& to);
  struct kept_block {
    std::uint64_t number = 0;
    std::int32_t place = 0;
    block_identity identity;
  };
  /// Returns the blocks in the first `n_places` places of the file, in the order in which they were
  /// written. Places with an incomplete block are left out, as are blocks that another model or
  /// another hash key has written. Only headers are checked here; read() checks the blocks' bytes.
  /// The scan of a large file takes long, and it stops early once `stop` is set.
  std::vector<kept_block> scan(std::int32_t n_places, std::int32_t block_tokens,
                               const hash_key& key, const std::atomic<bool>& stop);
  void prefetch(std::int32_t place) { store_->prefetch(place * stride_, stride_); }
  std::int64_t stride() const { return stride_; }
  std::string describe() const { return store_->describe(); }

private:
  std::unique_ptr<models::offload::disk_store> store_;
  std::int64_t block_bytes_;
  std::int64_t stride_;
  std::uint64_t fingerprint_;
  std::atomic<std::uint64_t> number_{0}; ///< number of the next write
};

} // namespace twill::actors
