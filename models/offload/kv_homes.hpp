// kv_homes: where KV of block runs lives when it is not on the device, and how its bytes get there
// and back.
//
// KV of one layer and one micro-batch is an image and tails. The image has the full blocks, block i
// of sequence s as number i * sequences + s, so that sequences of like lengths fill it from its
// beginning: its bytes travel in few large pieces, as they are or packed to 4 bits. Each block
// takes whole pages. A tail, one per sequence, is the block that is not full: written anew by every
// token, it stays in host memory until it is full, so that a block goes to its home once, and is
// rounded once. Where device memory is the host's, tails are used where they are.
//
// Thread safety: copies of different images and tails, or of different bytes of one, at the same
// time. Owns host memory and the disk's file.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/copy_stream.hpp"
#include "models/decoder/kv_record.hpp"
#include "models/offload/io_pool.hpp"
#include "models/offload/link_pacer.hpp"
#include "models/offload/options.hpp"
#include "models/offload/page_sums.hpp"

namespace twill::models::offload {

struct kv_stream_options {
  shares kv;                  ///< of the layers; every micro-batch alike
  gpu::kv_layer shape;        ///< of one micro-batch and layer; n_blocks the image's
  std::int32_t sequences = 1; ///< of a micro-batch; n_blocks is a multiple
  std::int32_t n_layers = 0;
  std::int32_t n_batches = 0; ///< micro-batches alive at once
  std::int32_t buffers = 2;   ///< one in use, the others on their way
  bool four_bits = false;     ///< images at home and on their way; needs gpu::has_kv4
  /// KV of the host tier is used where it is; only where device memory is the host's, and not
  /// with four_bits.
  bool attend_at_home = false;
  bool tails_travel = true; ///< false only where device memory is the host's
};

/// Blocks of one sequence.
struct block_range {
  std::int32_t sequence = 0; ///< of the micro-batch
  std::int32_t first = 0;
  std::int32_t count = 0; ///< full ones
  bool open = false;      ///< one that is not full follows them: the tail
  bool filled = false;    ///< the only full one was the tail until now, and lies there
};

/// Neighbours in an image, by their numbers.
struct block_span {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

/// Where full blocks lie until they are at home.
enum class lie : std::uint8_t { in_image, in_tails, anywhere };

/// The full ones among `blocks` that lie there; ascending, neighbours joined.
std::vector<block_span> spans_of(const std::vector<block_range>& blocks, lie where,
                                 std::int32_t sequences);

/// Bytes from one block to the next, in whole pages.
struct kv_strides {
  std::int64_t plain = 0; ///< as attention reads it; of tails, too
  std::int64_t home = 0;  ///< of images at home and on their way

  explicit kv_strides(const kv_stream_options& kv);
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
  unsigned char* tails(std::int32_t layer, std::int32_t batch) const; // (sequences)

  /// Bytes of an image at home.
  struct extent {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  /// How blocks of an image are copied: each element is worth a task of its own.
  std::vector<std::vector<extent>>
  tasks_of(std::int32_t layer, const std::vector<block_span>& blocks, way direction) const;
  /// `device`: an image as it travels. Pages of the disk are checked against what was written there
  /// last.
  result<nothing> copy(std::int32_t layer, std::int32_t batch, unsigned char* device,
                       const extent& e, way direction, io_worker& worker) const;
  /// Tails to device memory and back, those that are open, and back also those that were filled.
  result<nothing> copy_tails(std::int32_t layer, std::int32_t batch, unsigned char* device,
                             const std::vector<block_range>& blocks, way direction,
                             io_worker& worker) const;
  /// Filled blocks, which lie in tails here, to their place in the image at home; not 4 bits.
  result<nothing> keep_filled(std::int32_t layer, std::int32_t batch,
                              const std::vector<block_range>& blocks) const;

private:
  kv_homes(const kv_stream_options& kv, const offload_options& where);
  result<nothing> allocate(const offload_options& where);
  /// Among those of its tier.
  std::int64_t image_number(std::int32_t layer, std::int32_t batch) const;
  result<nothing> write(std::int64_t at, const unsigned char* from, std::int64_t bytes) const;

  kv_stream_options options_;
  mutable link_pacer link_;
  std::vector<tier> homes_;          ///< of each layer
  std::vector<std::int32_t> number_; ///< of each layer among those of its tier
  std::int64_t on_host_ = 0, on_disk_ = 0;
  kv_strides strides_;
  std::int64_t image_bytes_ = 0; ///< at home
  gpu::host_buffer host_;        // (on_host_, n_batches, image_bytes_)
  gpu::host_buffer tails_;       // (on_disk_ + on_host_, n_batches, sequences, strides_.plain)
  std::unique_ptr<block_store> store_;
  mutable page_sums sums_; ///< of what is in the store
};

} // namespace twill::models::offload
