// hidden_stream: keeps hidden states of micro-batches in host memory or on disk between tasks of a
// block schedule (plan/block_schedule.hpp). Before a task it loads the task's state into a device
// buffer (staging_buffers), and after the task it stores the state again.
//
// A state belongs to a chunk, which is a group of rows of a micro-batch's step. All states of a
// micro-batch are kept in one tier; the shares of the tiers are percentages of the micro-batches.
// Threads: call all functions on the thread that owns the device; io_pool's workers copy. The
// stream owns its host memory, file and buffers. Bytes from the disk are checked against their
// checksum. Failure: after a copy has failed, every acquire() fails.
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
  std::int32_t buffers = 4; ///< device buffers for states that are not kept on the device; at least
                            ///< 1
};

/// Names the state of one chunk of one micro-batch; both numbers count from 0.
struct hidden_state {
  std::int32_t batch = -1, chunk = -1;
  friend bool operator==(const hidden_state&, const hidden_state&) = default;
};

class hidden_stream {
public:
  /// `where` are the offloading options of the weights. Hidden states use the same folder, way of
  /// reading, number of threads, simulated link and memory limits.
  static result<std::unique_ptr<hidden_stream>>
  create(gpu::device& dev, const hidden_options& hidden, const offload_options& where);
  /// Device memory that create() takes.
  static std::int64_t device_bytes(const hidden_options& hidden);

  /// Begins to load the state if no buffer holds it yet and a buffer is idle.
  void load_ahead(hidden_state of, std::int64_t bytes);
  /// Waits until the state's `bytes` are on the device and returns their address. With `anew` the
  /// caller will overwrite the state, so nothing is loaded.
  result<float*> acquire(hidden_state of, std::int64_t bytes, bool anew);
  /// Call this once the task that uses the state is launched. The state is stored when the device
  /// has finished the task; with `dropped` it is discarded instead.
  void release(hidden_state of, std::int64_t bytes, bool dropped);

  transfer_stats stats() const;
  void record_to(span_recorder* t) { timeline_ = t; }
  /// Sets the layer to which spans recorded from now on belong.
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
  std::int64_t room_; ///< bytes of a state, rounded up to whole pages
  std::vector<tier> tiers_;
  link_pacer link_;
  span_recorder* timeline_ = nullptr;
  std::int32_t layer_ = 0;
  gpu::buffer memory_;    ///< the buffers, then the states that live on the device
  gpu::host_buffer host_; ///< states of the host tier
  std::unique_ptr<disk_store> store_;
  std::vector<std::uint64_t> sums_; ///< one per transfer_bytes of each state on disk
  staging_buffers buffers_;         ///< the lock of the buffers guards stats_, too
  transfer_stats stats_;
  std::unique_ptr<io_pool> pool_; // last member, so that its threads end before the members that
                                  // they use
};

} // namespace twill::models::offload
