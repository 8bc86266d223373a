// hidden_stream: hidden states of micro-batches that rest in host memory or on disk between tasks
// and pass through device buffers around each: loaded ahead of it, stored behind it.
//
// A state belongs to a chunk: some rows of a micro-batch's step. All states of a micro-batch live
// in one tier, the shares are of micro-batches. Threads: the device's, but for the copies, which
// io_pool's workers do. Owns homes and buffers. Failure: a copy that failed is the failure of the
// next acquire(). What is read from the disk is compared with its sum.
//
// Device buffers: see staging_buffers.
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
  shares hidden;
  std::int64_t state_bytes = 0; ///< of a chunk, at most
  std::int32_t n_batches = 1;   ///< alive at once
  std::int32_t chunks = 1;      ///< of one, at most
  std::int32_t buffers = 4;     ///< for those that travel, at least 1
};

/// A chunk of a micro-batch, both counted from 0.
struct hidden_state {
  std::int32_t batch = -1, chunk = -1;
  friend bool operator==(const hidden_state&, const hidden_state&) = default;
};

class hidden_stream {
public:
  /// `where`: the weights' options: folder, reads, threads, link and caps are the same.
  static result<std::unique_ptr<hidden_stream>>
  create(gpu::device& dev, const hidden_options& hidden, const offload_options& where);
  /// Device memory that create() takes.
  static std::int64_t device_bytes(const hidden_options& hidden);

  /// Begins to load when a buffer is free and the state is in none.
  void load_ahead(hidden_state of, std::int64_t bytes);
  /// Device memory with the state, of which `bytes` were stored; waits for them. `anew`: for one
  /// that is about to be written, nothing is read.
  result<float*> acquire(hidden_state of, std::int64_t bytes, bool anew);
  /// What uses it is launched: it goes home when the device is done, or is dropped.
  void release(hidden_state of, std::int64_t bytes, bool dropped);

  transfer_stats stats() const;
  void record_to(span_recorder* t) { timeline_ = t; }
  /// The layer that tasks are at, for the timeline.
  void at_layer(std::int32_t layer) { layer_ = layer; }

private:
  hidden_stream(const hidden_options& hidden, const offload_options& where);
  result<nothing> allocate(gpu::device& dev, const offload_options& where);
  tier tier_of(hidden_state of) const { return tiers_[static_cast<std::size_t>(of.batch)]; }
  /// Among the states of its tier.
  std::int64_t number_of(hidden_state of) const;
  std::int64_t content_of(hidden_state of) const {
    return std::int64_t{of.batch} * options_.chunks + of.chunk;
  }
  void move(staging_buffer& b, hidden_state of, std::int64_t bytes, bool to_device);
  result<nothing> copy(hidden_state of, unsigned char* device, std::int64_t at, std::int64_t bytes,
                       bool to_device, io_worker& worker);

  hidden_options options_;
  std::int64_t room_; ///< of a state, in whole pages
  std::vector<tier> tiers_;
  link_pacer link_;
  span_recorder* timeline_ = nullptr;
  std::int32_t layer_ = 0;
  gpu::buffer memory_;    ///< buffers, then the states that live on the device
  gpu::host_buffer host_; ///< those of the host tier
  std::unique_ptr<disk_store> store_;
  std::vector<std::uint64_t> sums_; ///< one per transfer_bytes of each state on disk
  staging_buffers buffers_;         ///< its lock guards stats_, too
  transfer_stats stats_;
  std::unique_ptr<io_pool> pool_; // last: its threads end before what they use
};

} // namespace twill::models::offload
