// block_file: KV blocks in a file, in equal places. Each has a header that says what it holds and
// for which model, with a checksum of its own, and a checksum of the bytes. So the file needs no
// index, and a place that a crash left half written is known by its checksums.
//
// Thread safety: any number of threads at once, on different places. Nothing is synced to the
// medium: what a power failure tears is found by its checksum.
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
  /// `fingerprint` names everything that bytes of a block depend on beside its key.
  block_file(std::unique_ptr<models::offload::disk_store> store, std::int64_t block_bytes,
             const std::string& fingerprint);

  /// `bytes` is a place of a host_pool, whose header is written over.
  models::result<nothing> write(std::int32_t place, const block_identity& identity,
                                const host_block& bytes);
  /// Fails when the place does not hold block `key` as it was written.
  models::result<nothing> read(std::int32_t place, const block_key& key, const host_block& to);
  /// What the places below `n_places` hold, in the order in which they were written. Places that
  /// hold nothing whole, or something of another model or another hash key, are left out. The bytes
  /// themselves are compared when they are read. A file of many places takes long: the scan ends
  /// where it is once `stop` is set.
  struct kept_block {
    std::uint64_t number = 0;
    std::int32_t place = 0;
    block_identity identity;
  };
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
  std::atomic<std::uint64_t> number_{0}; ///< of the next write
};

} // namespace twill::actors
