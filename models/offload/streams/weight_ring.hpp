// weight_ring: device buffers (staging_buffers) through which streamed weights pass, filled ahead
// of their use.
//
// Threads: I/O threads fill the buffers; everything else belongs to the device's thread. A group's
// transfers are one order (io_threads). In a daemon the offloader actor serves it;
// where the device's thread has to wait for a group whose order is not served yet, the ring serves
// the order itself. A group that is in host memory alone is not ordered: its copies begin at once.
// Groups are used in a known order, again and again; while one is in use the next ones are on their
// way, and only the group that is needed is waited for. On a device that runs asynchronously copies
// from the host are begun, not waited for: acquire() makes the device wait for them, and the next
// copies into a buffer wait for the work that was launched before its release (markers). Nothing
// synchronises the device. Failure: a transfer that failed fails every later acquire().
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
  double waited_seconds = 0; ///< that the compute waited for weights
  double moving_seconds = 0; ///< with a transfer under way
};

class weight_ring {
public:
  /// Allocates `buffers` buffers, each as large as the largest group in `order`, the order of use
  /// in a whole forward pass.
  static result<std::unique_ptr<weight_ring>> create(gpu::device& dev,
                                                     const weight_placement& placement,
                                                     io_pool& pool, std::vector<std::int32_t> order,
                                                     std::int32_t buffers);

  /// Begins a pass that uses only the first `n` groups of the order; the next pass begins with the
  /// first group again.
  void begin_pass(std::size_t n);
  /// Waits until the group is on the device or on its way there, makes the device's next work wait
  /// for it, and places its matrices there.
  result<nothing> acquire(std::int32_t group);
  /// No op that is launched from now on uses the group.
  void release(std::int32_t group);

  ring_stats stats() const;
  /// Records transfers, and with `uses` how long each group was in use.
  void record_to(span_recorder* t, bool uses) {
    records_uses_ = uses;
    timeline_ = t;
  }

private:
  /// Where the copies into a buffer end on each worker's stream, for what the buffer holds and for
  /// what it held before, which may never have been used. The lock guards it all, but `before` and
  /// the markers of `now`, which belong to the workers while the buffer is filled.
  struct arrival {
    gpu::marker end;
    bool pending = false; ///< the device has not been told to wait for it
  };
  struct arrivals {
    std::vector<std::unique_ptr<arrival>> now, before; // (workers)

    void create(std::size_t workers);
    /// The buffer is about to take another content.
    void turn();
    /// A worker's next copies, or its thread where it reads by itself, follow the buffer's last
    /// use.
    result<nothing> follow(staging_buffer& b, io_worker& worker, bool by_host) const;
    result<nothing> device_follows(gpu::device& dev) const;
  };

  weight_ring(gpu::device& dev, const weight_placement& placement, io_pool& pool)
      : dev_(dev), placement_(placement), pool_(pool) {}
  /// Begins to fetch the groups that come next from `cursor_` on, as far as buffers are idle.
  void fill_ahead();
  void fill(staging_buffer& b, std::int32_t group);
  void order(staging_buffer& b, arrivals& arriving, std::int32_t group, std::int32_t transfers);
  void transferred(staging_buffer& b, std::int32_t group, const result<nothing>& outcome,
                   const io_worker& worker);

  gpu::device& dev_;
  const weight_placement& placement_;
  io_pool& pool_;
  std::atomic<span_recorder*> timeline_ = nullptr; ///< workers may fill before it is set
  bool records_uses_ = false;
  span_recorder::clock::time_point used_since_{}; ///< of the group that is in use
  gpu::buffer memory_;      ///< of all buffers in one stretch, which huge pages need
  staging_buffers buffers_; ///< its lock guards what follows
  std::map<const staging_buffer*, arrivals> arrivals_;
  std::vector<std::int32_t> order_;
  std::size_t pass_size_ = 0;
  std::size_t cursor_ = 0; ///< index in order_ of the group that is in use or comes next
  ring_stats stats_;
};

} // namespace twill::models::offload
