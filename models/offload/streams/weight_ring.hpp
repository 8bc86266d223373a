// weight_ring: device buffers (staging_buffers) through which streamed weights pass, filled ahead
// of their use.
//
// Threads: I/O threads fill the buffers; the device's thread makes all calls. A group
// (transfer_group) is the streamed weights of a layer, or of a part of a layer or of the head.
//
// Groups are used in a known sequence, again and again. While a group is in use, the next groups
// are being fetched, and the caller waits only for the group that it needs. On a device that runs
// asynchronously, host threads only begin the copies from host memory and do not wait for them.
// acquire() makes the device's later work wait for the copies, and the next copies into a buffer
// wait, by means of a gpu::marker (an event), for the work that was launched before the buffer's
// release. The device is never synchronised. Failure: after a transfer has failed, every acquire()
// fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "models/offload/streams/span_recorder.hpp"
#include "models/offload/streams/staging_buffers.hpp"
#include "models/offload/streams/weight_placement.hpp"

namespace twill::models::offload {

struct ring_stats {
  std::int64_t disk_bytes = 0; ///< moved from disk to the device
  std::int64_t host_bytes = 0;
  double waited_seconds = 0; ///< time for which the compute waited for weights
  double moving_seconds = 0; ///< time with at least one transfer running
};

class weight_ring {
public:
  /// Allocates `buffers` buffers, each as large as the largest transfer group in `order`. `order`
  /// lists the transfer groups in the sequence in which a whole forward pass uses them.
  static result<std::unique_ptr<weight_ring>> create(gpu::device& dev,
                                                     const weight_placement& placement,
                                                     io_pool& pool, std::vector<std::int32_t> order,
                                                     std::int32_t buffers);

  /// Begins a forward pass that uses only the first `n` transfer groups of the order; the next pass
  /// begins with the first group again.
  void begin_pass(std::size_t n);
  /// Waits until the transfer group is on the device or its copies to the device have begun, makes
  /// the device's next work wait for it, and lets the group's packed_matrix objects refer to the
  /// buffer.
  result<nothing> acquire(std::int32_t group);
  /// Ends the use of the group: no op that is launched from now on may read it.
  void release(std::int32_t group);

  ring_stats stats() const;
  /// Records transfers, and with `uses` how long each group was in use.
  void record_to(span_recorder* t, bool uses) {
    records_uses_ = uses;
    timeline_ = t;
  }

private:
  /// The end of one I/O worker's copies into a buffer: a gpu::marker (an event) on the worker's
  /// copy stream. In `arrivals`, `now` has the markers of the buffer's current content, and
  /// `before` those of its previous content, even if no step used that content. The lock of
  /// `buffers_` guards the member `pending` of each arrival in `now`. It guards neither `before`
  /// nor the markers in `now`: only the workers use them, while the buffer is being filled.
  struct arrival {
    gpu::marker end;
    bool pending = false; ///< the device does not wait for `end` yet
  };
  struct arrivals {
    std::vector<std::unique_ptr<arrival>> now, before; // (workers)

    void create(std::size_t workers);
    /// Called before the buffer takes another content: moves the markers in `now` to `before`.
    void turn();
    /// Makes a worker's next copies wait for the buffer's last use and for pending copies of the
    /// previous content. With `by_host` the worker's thread itself waits, because it will write to
    /// the buffer without a copy stream.
    result<nothing> follow(staging_buffer& b, io_worker& worker, bool by_host) const;
    result<nothing> device_follows(gpu::device& dev) const;
  };

  weight_ring(gpu::device& dev, const weight_placement& placement, io_pool& pool)
      : dev_(dev), placement_(placement), pool_(pool) {}
  /// Begins to fetch the next groups from `cursor_` on, as long as there are idle buffers.
  void fill_ahead();
  void fill(staging_buffer& b, std::int32_t group);
  void post_transfers(staging_buffer& b, arrivals& arriving, std::int32_t group,
                      std::int32_t transfers);
  void transferred(staging_buffer& b, std::int32_t group, const result<nothing>& outcome,
                   const io_worker& worker);

  gpu::device& dev_;
  const weight_placement& placement_;
  io_pool& pool_;
  std::atomic<span_recorder*> timeline_ = nullptr; ///< workers may fill before it is set
  bool records_uses_ = false;
  span_recorder::clock::time_point used_since_{}; ///< of the group that is in use
  gpu::buffer memory_; ///< the memory of all buffers, contiguous so that huge pages can be used
  staging_buffers buffers_; ///< the lock of the buffers guards the members below
  std::map<const staging_buffer*, arrivals> arrivals_;
  std::vector<std::int32_t> order_;
  std::size_t pass_size_ = 0;
  std::size_t cursor_ = 0; ///< index in order_ of the group that is in use or comes next
  ring_stats stats_;
};

} // namespace twill::models::offload
