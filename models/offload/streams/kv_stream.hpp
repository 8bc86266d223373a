// kv_stream: KV of micro-batches that lives in host memory or on disk (kv_backing) and passes
// through device buffers (staging_buffers) around each schedule task: it is loaded ahead of the
// task, and the blocks that the task wrote are stored behind it.
//
// Threads: all calls belong to the device's thread; io_pool's workers copy. With 4 bits, segments
// travel packed and the device's thread packs and unpacks them (gpu/attention/kv4). Where attention
// reads KV of the host tier in place, nothing travels. Owns the backing and the buffers. Failure: a
// copy that failed fails every later acquire().
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
  /// `where` are the options of the weights; KV uses the same folder, reads, threads, link and
  /// caps.
  static result<std::unique_ptr<kv_stream>> create(gpu::device& dev, const kv_stream_options& kv,
                                                   const offload_options& where);
  /// Device memory that create() takes.
  static std::int64_t device_bytes(const kv_stream_options& kv);

  /// The layers whose KV travels. // (n_layers)
  static std::vector<bool> staged_layers(const kv_stream_options& kv);
  bool staged(std::int32_t layer) const { return backing_->tier_of(layer) != tier::device; }

  /// Begins to load the blocks `used` if a buffer is idle and no buffer has the segment.
  void load_ahead(std::int32_t layer, std::int32_t batch, const std::vector<block_range>& used);
  /// Waits until the segment with these blocks is on the device.
  result<gpu::kv_layer> acquire(std::int32_t layer, std::int32_t batch,
                                const std::vector<block_range>& used);
  /// The task is launched. The blocks it writes are stored when the device is done with it.
  void release(std::int32_t layer, std::int32_t batch, const std::vector<block_range>& written);

  /// Nobody will ask for this micro-batch any more.
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
  /// The segment as it travels: the buffer itself, or with 4 bits the packed form behind it.
  unsigned char* travelling(const staging_buffer& b) const;
  unsigned char* partial_blocks_of(const staging_buffer& b) const;
  gpu::kv_layer layer_at(unsigned char* segment, unsigned char* partial_blocks) const;
  void pack(const staging_buffer& b, const std::vector<block_range>& written);

  gpu::device& dev_;
  kv_stream_options options_;
  kv_block_layout record_; ///< of one block
  kv_strides strides_;
  span_recorder* timeline_ = nullptr;
  std::unique_ptr<kv_backing> backing_;
  gpu::buffer memory_;      ///< of all buffers
  staging_buffers buffers_; ///< its lock guards stats_, too
  transfer_stats stats_;
  std::unique_ptr<io_pool> pool_; // last: its threads end before what they use
};

} // namespace twill::models::offload
