// kv_homes: where KV of block runs lives when it is not on the device, and how its bytes get there
// and back.
//
// KV of one layer and one micro-batch is an image: keys, values and scales of its blocks; at home
// as they are, or packed to 4 bits. Block i of sequence s is number i * sequences + s, so that
// sequences of like lengths fill an image from its beginning: its bytes travel in few large pieces.
// A sequence's last block is written anew by every token until it is full. With a home on disk, or
// in 4 bits, such open blocks wait in host memory: a block goes to the disk once, and is rounded
// once.
//
// Thread safety: copies of different images, or of different bytes of one, at the same time.
// Owns host memory and the disk's file.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/copies.hpp"
#include "gpu/ops/attention.hpp"
#include "models/offload/io_pool.hpp"
#include "models/offload/link_pacer.hpp"
#include "models/offload/options.hpp"
#include "models/offload/page_sums.hpp"

namespace twill::models::offload {

struct kv_stream_options {
  shares kv;                  ///< of the layers; every micro-batch alike
  gpu::kv_layer shape;        ///< of one micro-batch and layer; n_blocks its own
  std::int32_t sequences = 1; ///< of a micro-batch; n_blocks is a multiple
  std::int32_t n_layers = 0;
  std::int32_t n_batches = 0; ///< micro-batches alive at once
  std::int32_t buffers = 2;   ///< one in use, the others on their way
  bool four_bits = false;     ///< images at home and on their way; needs gpu::has_kv4
  /// KV of the host tier is used where it is; only where device memory is the host's, and not
  /// with four_bits.
  bool attend_at_home = false;
};

/// Blocks [first, first + count) of one sequence.
struct block_range {
  std::int32_t sequence = 0; ///< of the micro-batch
  std::int32_t first = 0;
  std::int32_t count = 0;
  bool open = false; ///< the last of them is not full yet
};

/// Neighbours in an image, by their numbers.
struct block_span {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

/// An image's parts one after another, each (n_blocks, block_bytes) from a whole page on.
struct kv_parts {
  std::vector<std::int64_t> at, block_bytes;
  std::int64_t bytes = 0;

  static kv_parts on_device(const gpu::kv_layer& shape);
  static kv_parts at_home(const kv_stream_options& kv);
};

/// Device memory that holds an image.
struct kv_image {
  unsigned char* plain = nullptr;  ///< kv_parts::on_device
  unsigned char* packed = nullptr; ///< kv_parts::at_home, 4 bits only
};

enum class way : std::uint8_t { to_device, to_home };

class kv_homes {
public:
  /// Fails with the numbers when the host tier, or the disk's file, cannot be had.
  static result<std::unique_ptr<kv_homes>> create(const kv_stream_options& kv,
                                                  const offload_options& where);
  /// The tier of each layer. // (n_layers)
  static std::vector<tier> of_layers(const kv_stream_options& kv);

  tier home_of(std::int32_t layer) const { return homes_[static_cast<std::size_t>(layer)]; }
  bool in_place(std::int32_t layer) const {
    return options_.attend_at_home && home_of(layer) == tier::host;
  }
  unsigned char* host_image(std::int32_t layer, std::int32_t batch) const;

  /// Without those that are kept open; ascending, neighbours joined.
  std::vector<block_span> closed(std::int32_t layer, const std::vector<block_range>& blocks) const;
  /// Bytes of an image at home.
  struct extent {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  /// How closed blocks are copied: each element is worth a task of its own.
  std::vector<std::vector<extent>>
  tasks_of(std::int32_t layer, const std::vector<block_span>& closed, way direction) const;
  /// Pages of the disk are checked against what was written there last.
  result<nothing> copy(std::int32_t layer, std::int32_t batch, const kv_image& device,
                       const extent& e, way direction, io_worker& worker) const;
  /// Those among `blocks` that are kept open; after all other copies to the device.
  result<nothing> copy_open(std::int32_t layer, std::int32_t batch, const kv_image& device,
                            const std::vector<block_range>& blocks, way direction,
                            io_worker& worker) const;

private:
  kv_homes(const kv_stream_options& kv, const offload_options& where);
  result<nothing> allocate(const offload_options& where);
  bool keeps_open(std::int32_t layer) const {
    return options_.four_bits || home_of(layer) == tier::disk;
  }
  /// Among those of its tier.
  std::int64_t image_number(std::int32_t layer, std::int32_t batch) const;
  std::vector<extent> extents(const std::vector<block_span>& blocks, bool on_disk,
                              std::int64_t gap) const;

  kv_stream_options options_;
  mutable link_pacer link_;
  std::vector<tier> homes_;          ///< of each layer
  std::vector<std::int32_t> number_; ///< of each layer among those of its tier
  std::int64_t on_host_ = 0, on_disk_ = 0;
  kv_parts device_parts_, home_parts_;
  std::int64_t block_bytes_ = 0; ///< of one block, all its parts
  gpu::host_buffer host_;        // (on_host_, n_batches, home_parts_.bytes)
  gpu::host_buffer open_; // (layers that keep open blocks, n_batches, sequences, block_bytes_)
  std::unique_ptr<block_store> store_;
  mutable page_sums sums_; ///< of what is in the store
};

} // namespace twill::models::offload
