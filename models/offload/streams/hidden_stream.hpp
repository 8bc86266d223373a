// hidden_stream: hidden states of micro-batches that rest in host memory or on disk between
// schedule tasks and pass through device buffers (staging_buffers) around each task.
//
// A state belongs to a chunk, some rows of a micro-batch's step. All states of a micro-batch live
// in one tier; the shares count micro-batches. Threads: all calls belong to the device's thread;
// io_pool's workers copy. Owns host memory, file and buffers. What comes from the disk is compared
// with its checksum. Failure: a copy that failed fails every later acquire().
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "gpu/device.hpp"
#include "models/offload/options.hpp"
#include "models/offload/streams/disk_store.hpp"
#include "models/offload/streams/io_pool.hpp"
#include "models/offload/streams/link_pacer.hpp"
#include "models/offload/streams/span_recorder.hpp"
#include "models/offload/streams/staging_buffers.hpp"
#include "models/offload/streams/transfer_stats.hpp"
#include "models/offload/tiers.hpp"

namespace twill::models::offload {

struct hidden_options {
  shares hidden;                ///< percent of the micro-batches
  std::int64_t state_bytes = 0; ///< most bytes of a chunk
  std::int32_t n_batches = 1;   ///< micro-batches alive at once
  std::int32_t chunks = 1;      ///< most chunks of one micro-batch
  std::int32_t buffers = 4;     ///< device buffers for states that travel; at least 1
};

/// The state of one chunk of one micro-batch; both count from 0.
struct hidden_state {
  std::int32_t batch = -1, chunk = -1;
  friend bool operator==(const hidden_state&, const hidden_state&) = default;
};

class hidden_stream {
public:
  /// `where` are the options of the weights; hidden states use the same folder, reads, threads,
  /// link and caps.
  static result<std::unique_ptr<hidden_stream>>
  create(gpu::device& dev, const hidden_options& hidden, const offload_options& where);
  /// Device memory that create() takes.
  static std::int64_t device_bytes(const hidden_options& hidden);

  /// Begins to load the state if a buffer is idle and no buffer has it.
  void load_ahead(hidden_state of, std::int64_t bytes);
  /// Waits until the state's `bytes` are on the device and returns their place. With `anew` the
  /// state is about to be written: nothing is read.
  result<float*> acquire(hidden_state of, std::int64_t bytes, bool anew);
  /// The task is launched. The state is stored when the device is done with it, or dropped.
  void release(hidden_state of, std::int64_t bytes, bool dropped);

  transfer_stats stats() const;
  void record_to(span_recorder* t) { timeline_ = t; }
  /// The layer that recorded spans belong to from now on.
  void at_layer(std::int32_t layer) { layer_ = layer; }

private:
  hidden_stream(gpu::device& dev, const hidden_options& hidden, const offload_options& where);
  result<nothing> allocate(const offload_options& where);
  tier tier_of(hidden_state of) const { return tiers_[static_cast<std::size_t>(of.batch)]; }
  /// The state's number among the states of its tier.
  std::int64_t number_of(hidden_state of) const;
  std::int64_t content_of(hidden_state of) const {
    return std::int64_t{of.batch} * options_.chunks + of.chunk;
  }
  void move(staging_buffer& b, hidden_state of, std::int64_t bytes, bool to_device);
  result<nothing> copy(hidden_state of, unsigned char* device, std::int64_t at, std::int64_t bytes,
                       bool to_device, io_worker& worker);

  gpu::device& dev_;
  hidden_options options_;
  std::int64_t room_; ///< bytes of a state, in whole pages
  std::vector<tier> tiers_;
  link_pacer link_;
  span_recorder* timeline_ = nullptr;
  std::int32_t layer_ = 0;
  gpu::buffer memory_;    ///< the buffers, then the states that live on the device
  gpu::host_buffer host_; ///< states of the host tier
  std::unique_ptr<disk_store> store_;
  std::vector<std::uint64_t> sums_; ///< one per transfer_bytes of each state on disk
  staging_buffers buffers_;         ///< its lock guards stats_, too
  transfer_stats stats_;
  std::unique_ptr<io_pool> pool_; // last: its threads end before what they use
};

} // namespace twill::models::offload
