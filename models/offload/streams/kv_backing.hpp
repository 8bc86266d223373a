// kv_backing: stores, in host memory or on disk, that part of an offline job's KV which is not kept
// on the device, and copies it to the device and back.
//
// The KV of one layer and one micro-batch consists of a segment and of partial blocks. The segment
// has the full KV blocks. Block i of sequence s has the number i * sequences + s, so that sequences
// of similar length fill the segment from its beginning and few large transfers move it, plain or
// packed to 4 bits. Each block takes whole pages. A sequence's partial block is its last block
// while that is not full. Every token writes to the partial block, so it stays in host memory until
// it is full; each block is thus moved to its tier once and rounded once. Where device memory is
// host memory, attention reads and writes partial blocks in place.
//
// Thread safety: several threads may copy different segments and partial blocks, or different bytes
// of one segment, at the same time. A kv_backing owns its host memory and its file on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/attention/attention.hpp"
#include "gpu/copy_stream.hpp"
#include "models/offload/options.hpp"
#include "models/offload/streams/io_pool.hpp"
#include "models/offload/streams/kv_block_layout.hpp"
#include "models/offload/streams/link_pacer.hpp"
#include "models/offload/streams/page_sums.hpp"

namespace twill::models::offload {

struct kv_stream_options {
  shares kv; ///< percent of the layers whose KV is kept in each tier; equal for every micro-batch
  gpu::kv_layer shape;        ///< the shape of one segment; n_blocks is a multiple of `sequences`
  std::int32_t sequences = 1; ///< sequences of a micro-batch
  std::int32_t n_layers = 0;
  std::int32_t n_batches = 0; ///< micro-batches alive at once
  std::int32_t buffers = 2;   ///< device buffers: one is in use, the others are being loaded or
                              ///< stored
  bool four_bits = false;     ///< segments are packed off the device; needs gpu::has_kv4
  /// If true, attention reads the host tier's KV in place. Allowed only where device memory is host
  /// memory, and not together with four_bits.
  bool attend_on_host = false;
  bool partial_blocks_travel = true; ///< partial blocks are copied to the device; may be false
                                     ///< where device memory is host memory
};

/// Blocks of one sequence that a step reads or writes.
struct block_range {
  std::int32_t sequence = 0; ///< its index in the micro-batch
  std::int32_t first = 0;
  std::int32_t count = 0; ///< number of full blocks
  bool open = false;      ///< a partial block follows them
  bool filled = false; ///< `count` is 1, and that block has just become full: its bytes are still
                       ///< in the partial block
};

/// Blocks of a segment whose numbers follow each other.
struct block_span {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

/// Where full blocks are stored before they reach their tier.
enum class block_location : std::uint8_t { in_segment, in_partial_blocks, anywhere };

/// Returns the block numbers of those full blocks of `blocks` that are now at `where`, in ascending
/// order, with adjacent numbers joined to spans.
std::vector<block_span> spans_of(const std::vector<block_range>& blocks, block_location where,
                                 std::int32_t sequences);

/// Distances in bytes from one block to the next, in whole pages.
struct kv_strides {
  std::int64_t plain = 0;  ///< for blocks in the form that attention reads, and for partial blocks
  std::int64_t stored = 0; ///< for a segment's blocks in the form in which they are stored and
                           ///< transferred

  explicit kv_strides(const kv_stream_options& kv);
};

enum class transfer_direction : std::uint8_t { to_device, to_backing };

class kv_backing {
public:
  /// Fails if the memory of the host tier or the file on disk cannot be allocated; the message
  /// states the sizes.
  static result<std::unique_ptr<kv_backing>> create(const kv_stream_options& kv,
                                                    const offload_options& where);
  /// The tier of each layer. // (n_layers)
  static std::vector<tier> of_layers(const kv_stream_options& kv);

  tier tier_of(std::int32_t layer) const { return tiers_[static_cast<std::size_t>(layer)]; }
  bool used_on_host(std::int32_t layer) const {
    return options_.attend_on_host && tier_of(layer) == tier::host;
  }
  unsigned char* host_segment(std::int32_t layer, std::int32_t batch) const;
  unsigned char* partial_blocks(std::int32_t layer, std::int32_t batch) const; // (sequences)

  /// A range of bytes of a stored segment.
  struct extent {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  /// Returns the copies that move `blocks` of a segment (the full KV blocks of one layer and
  /// micro-batch), in groups. A worker makes the copies of a group in one task.
  std::vector<std::vector<extent>> tasks_of(std::int32_t layer,
                                            const std::vector<block_span>& blocks,
                                            transfer_direction direction) const;
  /// Copies one extent of a segment (the full KV blocks of one layer and micro-batch). `device` is
  /// the address of the segment's blocks on the device as they are transferred: packed to 4 bits if
  /// kv_stream_options::four_bits is true, otherwise plain. Pages from the disk are checked against
  /// the checksums of what was last written there.
  result<nothing> copy(std::int32_t layer, std::int32_t batch, unsigned char* device,
                       const extent& e, transfer_direction direction, io_worker& worker) const;
  /// Copies partial blocks (a sequence's last block while it is not full): to the device those of
  /// ranges with block_range::open, back from the device those of ranges with `open` or `filled`.
  result<nothing> copy_partial_blocks(std::int32_t layer, std::int32_t batch, unsigned char* device,
                                      const std::vector<block_range>& blocks,
                                      transfer_direction direction, io_worker& worker) const;
  /// Copies each block that has just become full (block_range::filled) from the partial blocks,
  /// where it was written, to its place among the full blocks. Must not be called with four_bits.
  result<nothing> keep_filled(std::int32_t layer, std::int32_t batch,
                              const std::vector<block_range>& blocks) const;

private:
  kv_backing(const kv_stream_options& kv, const offload_options& where);
  result<nothing> allocate(const offload_options& where);
  /// The segment's number among the segments of its tier.
  std::int64_t segment_number(std::int32_t layer, std::int32_t batch) const;
  result<nothing> write(std::int64_t at, const unsigned char* from, std::int64_t bytes) const;

  kv_stream_options options_;
  mutable link_pacer link_;
  std::vector<tier> tiers_;          ///< the tier of each layer // (n_layers)
  std::vector<std::int32_t> number_; ///< each layer's number among the layers of its tier
  std::int64_t on_host_ = 0, on_disk_ = 0;
  kv_strides strides_;
  std::int64_t segment_bytes_ = 0;  ///< bytes of one stored segment
  gpu::host_buffer host_;           // (on_host_, n_batches, segment_bytes_)
  gpu::host_buffer partial_blocks_; // (on_disk_ + on_host_, n_batches, sequences, strides_.plain)
  std::unique_ptr<disk_store> store_;
  mutable page_sums sums_; ///< checksums of the pages in the store
};

} // namespace twill::models::offload
