// kv_stream: moves the KV of micro-batches between a backing in host memory or on disk (kv_backing)
// and device buffers (staging_buffers). KV is loaded before the schedule task that uses it, and the
// blocks that the task wrote are stored after the task.
//
// Threads: call all functions on the thread that owns the device; io_pool's workers copy. If KV is
// stored with 4 bits, full blocks are transferred packed, and the device's thread packs and unpacks
// them (gpu/attention/kv4). Where attention reads KV in host memory in place, nothing is
// transferred. The stream owns the backing and the buffers. Failure: after a copy has failed, every
// acquire() fails.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/copy_stream.hpp"
#include "gpu/device.hpp"
#include "models/offload/options.hpp"
#include "models/offload/streams/io_pool.hpp"
#include "models/offload/streams/kv_backing.hpp"
#include "models/offload/streams/span_recorder.hpp"
#include "models/offload/streams/staging_buffers.hpp"
#include "models/offload/streams/transfer_stats.hpp"

namespace twill::models::offload {

class kv_stream {
public:
  /// `where` are the offloading options of the weights. KV uses the same folder, way of reading,
  /// number of threads, simulated link and memory limits.
  static result<std::unique_ptr<kv_stream>> create(gpu::device& dev, const kv_stream_options& kv,
                                                   const offload_options& where);
  /// Device memory that create() takes.
  static std::int64_t device_bytes(const kv_stream_options& kv);

  /// True for each layer whose KV is transferred. // (n_layers)
  static std::vector<bool> staged_layers(const kv_stream_options& kv);
  bool staged(std::int32_t layer) const { return backing_->tier_of(layer) != tier::device; }

  /// Begins to load the blocks `used` if no buffer holds the segment yet and a buffer is idle.
  void load_ahead(std::int32_t layer, std::int32_t batch, const std::vector<block_range>& used);
  /// Waits until the blocks `used` of the segment (the full KV blocks of one layer and micro-batch)
  /// are on the device, and returns the segment's location in device memory.
  result<gpu::kv_layer> acquire(std::int32_t layer, std::int32_t batch,
                                const std::vector<block_range>& used);
  /// Call this once the schedule task that uses the KV of this layer and micro-batch is launched.
  /// The blocks `written` are stored when the device has finished the task.
  void release(std::int32_t layer, std::int32_t batch, const std::vector<block_range>& written);

  /// Declares that no later call will name this micro-batch, so its buffers may be reused.
  void forget(std::int32_t batch);

  transfer_stats stats() const;
  void record_to(span_recorder* t) { timeline_ = t; }

private:
  kv_stream(gpu::device& dev, const kv_stream_options& kv);
  std::int64_t content_of(std::int32_t layer, std::int32_t batch) const {
    return std::int64_t{layer} * options_.n_batches + batch;
  }
  std::int32_t layer_in(const staging_buffer& b) const {
    return static_cast<std::int32_t>(b.content / options_.n_batches);
  }
  std::int32_t batch_in(const staging_buffer& b) const {
    return static_cast<std::int32_t>(b.content % options_.n_batches);
  }
  void fill(staging_buffer& b, std::int64_t content, const std::vector<block_range>& used);
  void move(staging_buffer& b, const std::vector<block_range>& blocks,
            transfer_direction direction);
  std::int64_t segment_bytes() const { return options_.shape.n_blocks * strides_.plain; }
  /// Address of the bytes of the segment (the full KV blocks of one layer and micro-batch) that are
  /// transferred. That is the beginning of the buffer, or with four_bits the copy that is packed to
  /// 4 bits and lies behind the plain one.
  unsigned char* travelling(const staging_buffer& b) const;
  unsigned char* partial_blocks_of(const staging_buffer& b) const;
  gpu::kv_layer layer_at(unsigned char* segment, unsigned char* partial_blocks) const;
  void pack(const staging_buffer& b, const std::vector<block_range>& written);

  gpu::device& dev_;
  kv_stream_options options_;
  kv_block_layout record_; ///< layout of one block
  kv_strides strides_;
  span_recorder* timeline_ = nullptr;
  std::unique_ptr<kv_backing> backing_;
  gpu::buffer memory_;      ///< of all buffers
  staging_buffers buffers_; ///< the lock of the buffers guards stats_, too
  transfer_stats stats_;
  std::unique_ptr<io_pool> pool_; // last member, so that its threads end before the members that
                                  // they use
};

} // namespace twill::models::offload
