// kv_backing: where the KV of an offline job lives that is not on the device, and how its bytes
// get to the device and back.
//
// The KV of one layer and one micro-batch is a segment and partial blocks. The segment has the full
// KV blocks: block i of sequence s is number i * sequences + s, so that sequences of similar length
// fill the segment from its beginning and its bytes travel in few large transfers, plain or packed
// to 4 bits. Each block takes whole pages. Each sequence has one partial block, its last block
// while it is not full. Every token writes it, so it stays in host memory until it is full; a block
// thus goes to its tier once and is rounded once. Where device memory is host memory, attention
// reads and writes partial blocks where they are.
//
// Thread safety: several threads may copy different segments and partial blocks, or different bytes
// of one segment, at the same time. Owns the host memory and the disk's file.
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
  shares kv;                  ///< percent of the layers; the same for every micro-batch
  gpu::kv_layer shape;        ///< one segment's; its n_blocks is a multiple of `sequences`
  std::int32_t sequences = 1; ///< of a micro-batch
  std::int32_t n_layers = 0;
  std::int32_t n_batches = 0; ///< micro-batches alive at once
  std::int32_t buffers = 2;   ///< device buffers: one in use, the others on their way
  bool four_bits = false;     ///< segments are packed off the device; needs gpu::has_kv4
  /// Attention reads KV of the host tier where it is. Only where device memory is host memory, and
  /// not with four_bits.
  bool attend_on_host = false;
  bool partial_blocks_travel = true; ///< may be false where device memory is host memory
};

/// Blocks of one sequence that a step reads or writes.
struct block_range {
  std::int32_t sequence = 0; ///< its index in the micro-batch
  std::int32_t first = 0;
  std::int32_t count = 0; ///< of full blocks
  bool open = false;      ///< a partial block follows them
  bool filled = false; ///< the only full block was the partial block until now and is stored there
};

/// Blocks of a segment whose numbers follow each other.
struct block_span {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

/// Where full blocks are stored before they reach their tier.
enum class block_location : std::uint8_t { in_segment, in_partial_blocks, anywhere };

/// The full blocks of `blocks` that are stored at `where`, ascending, neighbours joined.
std::vector<block_span> spans_of(const std::vector<block_range>& blocks, block_location where,
                                 std::int32_t sequences);

/// Bytes from one block to the next, in whole pages.
struct kv_strides {
  std::int64_t plain = 0;  ///< of blocks as attention reads them, and of partial blocks
  std::int64_t stored = 0; ///< of blocks of a segment off the device and on its way

  explicit kv_strides(const kv_stream_options& kv);
};

enum class transfer_direction : std::uint8_t { to_device, to_backing };

class kv_backing {
public:
  /// Fails with the numbers when the host tier, or the disk's file, cannot be had.
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

  /// Some bytes of a segment off the device.
  struct extent {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  /// The copies that move these blocks of a segment, grouped so that each group is worth one task
  /// of a worker.
  std::vector<std::vector<extent>> tasks_of(std::int32_t layer,
                                            const std::vector<block_span>& blocks,
                                            transfer_direction direction) const;
  /// Copies one extent. `device` is the segment as it travels. Pages that come from the disk are
  /// compared with what was written there last.
  result<nothing> copy(std::int32_t layer, std::int32_t batch, unsigned char* device,
                       const extent& e, transfer_direction direction, io_worker& worker) const;
  /// Copies the open partial blocks to device memory, or the open and the filled ones back.
  result<nothing> copy_partial_blocks(std::int32_t layer, std::int32_t batch, unsigned char* device,
                                      const std::vector<block_range>& blocks,
                                      transfer_direction direction, io_worker& worker) const;
  /// Copies filled blocks from the partial blocks to their place in the segment. Not with 4 bits.
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
  std::vector<tier> tiers_;          ///< of each layer // (n_layers)
  std::vector<std::int32_t> number_; ///< each layer's number among the layers of its tier
  std::int64_t on_host_ = 0, on_disk_ = 0;
  kv_strides strides_;
  std::int64_t segment_bytes_ = 0;  ///< of one segment off the device
  gpu::host_buffer host_;           // (on_host_, n_batches, segment_bytes_)
  gpu::host_buffer partial_blocks_; // (on_disk_ + on_host_, n_batches, sequences, strides_.plain)
  std::unique_ptr<disk_store> store_;
  mutable page_sums sums_; ///< of the pages in the store
};

} // namespace twill::models::offload
