// weight_ring: device buffers through which the weights that do not live there pass, filled ahead
// of use.
//
// Threads: everything but the filling, which io_pool's workers do, belongs to the device's thread.
// Groups are used in a known order, again and again; while one is in use the next ones are on their
// way. Nothing is waited for but the group that is needed. On a device that runs asynchronously, a
// buffer is refilled when the work that was launched before its release is done (a marker), not
// after a sync. Failure: a transfer that failed is the failure of the acquire() that needs it.
// Device buffers: see staging_buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "models/offload/streams/span_recorder.hpp"
#include "models/offload/streams/staging_buffers.hpp"
#include "models/offload/streams/weight_placement.hpp"

namespace twill::models::offload {

struct ring_stats {
  std::int64_t disk_bytes = 0; ///< moved to the device
  std::int64_t host_bytes = 0;
  double waited_seconds = 0; ///< that the compute stood still for weights
  double moving_seconds = 0; ///< with a transfer under way
};

class weight_ring {
public:
  /// `buffers` buffers for the largest of `homes`' groups among `order`, the order of a whole pass.
  static result<std::unique_ptr<weight_ring>> create(gpu::device& dev,
                                                     const weight_placement& locations,
                                                     io_pool& pool, std::vector<std::int32_t> order,
                                                     std::int32_t buffers);

  /// Only the first `n` groups of the order are used in this pass; the next one begins with the
  /// first again.
  void begin_pass(std::size_t n);
  /// Waits until the group's weights are there, and places its matrices.
  result<nothing> acquire(std::int32_t group);
  /// No op launched from now on uses it.
  void release(std::int32_t group);

  ring_stats stats() const;
  void record_to(span_recorder* t) { timeline_ = t; }

private:
  weight_ring(const weight_placement& locations, io_pool& pool) : homes_(locations), pool_(pool) {}
  /// Begins to fill what the order wants from `cursor_` on, as far as buffers are free.
  void fill_ahead();
  void fill(staging_buffer& b, std::int32_t group);
  void transferred(staging_buffer& b, std::int32_t group, const result<nothing>& outcome);

  const weight_placement& homes_;
  io_pool& pool_;
  span_recorder* timeline_ = nullptr;
  gpu::buffer memory_;      ///< all buffers: huge pages need long stretches
  staging_buffers buffers_; ///< its lock guards what follows
  std::vector<std::int32_t> order_;
  std::size_t pass_size_ = 0;
  std::size_t cursor_ = 0; ///< in order_: what is in use, or comes next
  ring_stats stats_;
};

} // namespace twill::models::offload
