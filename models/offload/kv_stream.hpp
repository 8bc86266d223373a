// kv_stream: KV of micro-batches that lives in host memory or on disk and passes through device
// buffers around each square: loaded ahead of it, its new blocks stored behind it.
//
// Threads: the device's, but for the copies, which io_pool's workers do. KV of one layer and one
// micro-batch travels as an image: keys, values and scales of its blocks, numbered from 0 within
// the micro-batch. Owns homes and buffers. Failure: a copy that failed is the failure of the next
// acquire().
//
// Invariants (under mutex_): an image is in at most one buffer; a buffer is free, or being filled,
// ready, in use, or being stored; what is being stored is not filled again before that is done.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/copies.hpp"
#include "gpu/device.hpp"
#include "gpu/ops/attention.hpp"
#include "models/offload/io_pool.hpp"
#include "models/offload/link_pacer.hpp"
#include "models/offload/options.hpp"
#include "models/offload/timeline.hpp"

namespace twill::models::offload {

struct kv_stream_options {
  shares kv;           ///< of the layers; every micro-batch alike
  gpu::kv_layer shape; ///< of one micro-batch and layer; n_blocks its own
  std::int32_t n_layers = 0;
  std::int32_t n_batches = 0; ///< micro-batches alive at once
  std::int32_t buffers = 3;   ///< one in use, the others on their way
};

/// Blocks [first, first + count) of a micro-batch.
struct block_range {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

struct kv_stats {
  std::int64_t loaded_bytes = 0, stored_bytes = 0;
  double waited_seconds = 0;
};

class kv_stream {
public:
  /// `where`: the weights' options: folder, reads, threads, link and caps are the same.
  static result<std::unique_ptr<kv_stream>> create(gpu::device& dev, const kv_stream_options& kv,
                                                   const offload_options& where);
  /// Device memory that create() takes.
  static std::int64_t buffer_bytes(const kv_stream_options& kv);

  /// The layers whose KV travels. // (n_layers)
  static std::vector<bool> staged_layers(const kv_stream_options& kv);
  bool staged(std::int32_t layer) const {
    return homes_[static_cast<std::size_t>(layer)] != tier::device;
  }

  /// Begins to load `used` when a buffer is free and the image is in none.
  void load_ahead(std::int32_t layer, std::int32_t batch, const std::vector<block_range>& used);
  /// Waits for the image with these blocks.
  result<gpu::kv_layer> acquire(std::int32_t layer, std::int32_t batch,
                                const std::vector<block_range>& used);
  /// The square is launched: its new blocks go home when the device is done with it.
  void release(std::int32_t layer, std::int32_t batch, const std::vector<block_range>& written);

  kv_stats stats() const;
  void record_to(timeline* t) { timeline_ = t; }

private:
  enum class state : std::uint8_t { free, filling, ready, in_use, storing };
  struct extent {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  struct buffer {
    gpu::buffer memory;
    gpu::marker last_use;
    state now = state::free;
    std::int32_t layer = -1, batch = -1;
    std::int32_t left = 0; ///< copies under way
  };

  kv_stream(const kv_stream_options& kv, const offload_options& where)
      : options_(kv), link_(where.link_bytes_per_second) {}
  buffer* find(std::int32_t layer, std::int32_t batch);
  buffer* idle_buffer();
  std::vector<extent> extents(const std::vector<block_range>& blocks, bool on_disk) const;
  void move(buffer& b, const std::vector<block_range>& blocks, bool to_device);
  result<nothing> copy(buffer& b, const extent& e, bool to_device, io_worker& worker);
  unsigned char* host_home(const buffer& b) const;
  std::int64_t disk_home(const buffer& b) const;
  gpu::kv_layer layer_at(const buffer& b) const;

  kv_stream_options options_;
  link_pacer link_;
  timeline* timeline_ = nullptr;
  std::vector<tier> homes_;                              ///< of each layer
  std::vector<std::int64_t> part_at_, part_block_bytes_; ///< keys, values, their scales
  std::int64_t image_bytes_ = 0;
  std::vector<std::int32_t> number_; ///< of each layer among those of its tier
  gpu::host_buffer host_;
  std::unique_ptr<block_store> store_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<buffer>> buffers_;
  std::optional<failure> why_;
  kv_stats stats_;
  std::unique_ptr<io_pool> pool_; // last: its threads end before what they use
};

} // namespace twill::models::offload
