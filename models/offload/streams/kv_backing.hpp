// kv_backing: where KV of block runs lives when it is not on the device, and how its bytes get
// there and back.
//
// KV of one layer and one micro-batch is an segment and partial blocks. The segment has the full
// blocks, block i of sequence s as number i * sequences + s, so that sequences of like lengths fill
// it from its beginning: its bytes travel in few large pieces, as they are or packed to 4 bits.
// Each block takes whole pages. A partial block, one per sequence, is the block that is not full:
// written anew by every token, it stays in host memory until it is full, so that a block goes to
// its home once, and is rounded once. Where device memory is the host's, partial blocks are used
// where they are.
//
// Thread safety: copies of different segments and partial blocks, or of different bytes of one, at
// the same time. Owns host memory and the disk's file.
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
  shares kv;                  ///< of the layers; every micro-batch alike
  gpu::kv_layer shape;        ///< of one micro-batch and layer; n_blocks the segment's
  std::int32_t sequences = 1; ///< of a micro-batch; n_blocks is a multiple
  std::int32_t n_layers = 0;
  std::int32_t n_batches = 0; ///< micro-batches alive at once
  std::int32_t buffers = 2;   ///< one in use, the others on their way
  bool four_bits = false;     ///< segments at home and on their way; needs gpu::has_kv4
  /// KV of the host tier is used where it is; only where device memory is the host's, and not
  /// with four_bits.
  bool attend_on_host = false;
  bool partial_blocks_travel = true; ///< false only where device memory is the host's
};

/// Blocks of one sequence.
struct block_range {
  std::int32_t sequence = 0; ///< of the micro-batch
  std::int32_t first = 0;
  std::int32_t count = 0; ///< full ones
  bool open = false;      ///< one that is not full follows them: the partial block
  bool filled = false;    ///< the only full one was the partial block until now, and lies there
};

/// Neighbours in an segment, by their numbers.
struct block_span {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

/// Where full blocks lie until they are at home.
enum class block_location : std::uint8_t { in_segment, in_partial_blocks, anywhere };

/// The full ones among `blocks` that lie there; ascending, neighbours joined.
std::vector<block_span> spans_of(const std::vector<block_range>& blocks, block_location where,
                                 std::int32_t sequences);

/// Bytes from one block to the next, in whole pages.
struct kv_strides {
  std::int64_t plain = 0; ///< as attention reads it; of partial blocks, too
  std::int64_t home = 0;  ///< of segments at home and on their way

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

  /// Bytes of an segment at home.
  struct extent {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  /// How blocks of an segment are copied: each element is worth a task of its own.
  std::vector<std::vector<extent>> tasks_of(std::int32_t layer,
                                            const std::vector<block_span>& blocks,
                                            transfer_direction direction) const;
  /// `device`: an segment as it travels. Pages of the disk are checked against what was written
  /// there last.
  result<nothing> copy(std::int32_t layer, std::int32_t batch, unsigned char* device,
                       const extent& e, transfer_direction direction, io_worker& worker) const;
  /// Partial blocks to device memory and back, those that are open, and back also those that were
  /// filled.
  result<nothing> copy_partial_blocks(std::int32_t layer, std::int32_t batch, unsigned char* device,
                                      const std::vector<block_range>& blocks,
                                      transfer_direction direction, io_worker& worker) const;
  /// Filled blocks, which lie in partial blocks here, to their place in the segment at home; not 4
  /// bits.
  result<nothing> keep_filled(std::int32_t layer, std::int32_t batch,
                              const std::vector<block_range>& blocks) const;

private:
  kv_backing(const kv_stream_options& kv, const offload_options& where);
  result<nothing> allocate(const offload_options& where);
  /// Among those of its tier.
  std::int64_t segment_number(std::int32_t layer, std::int32_t batch) const;
  result<nothing> write(std::int64_t at, const unsigned char* from, std::int64_t bytes) const;

  kv_stream_options options_;
  mutable link_pacer link_;
  std::vector<tier> tiers_;          ///< of each layer
  std::vector<std::int32_t> number_; ///< of each layer among those of its tier
  std::int64_t on_host_ = 0, on_disk_ = 0;
  kv_strides strides_;
  std::int64_t segment_bytes_ = 0;  ///< at home
  gpu::host_buffer host_;           // (on_host_, n_batches, image_bytes_)
  gpu::host_buffer partial_blocks_; // (on_disk_ + on_host_, n_batches, sequences, strides_.plain)
  std::unique_ptr<disk_store> store_;
  mutable page_sums sums_; ///< of what is in the store
};

} // namespace twill::models::offload
