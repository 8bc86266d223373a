// span_recorder: records when each computation and each transfer ran, so that a tool can draw the
// timeline of a schedule.
//
// Thread safety: every function may be called from any thread. Streams and jobs hold a pointer to a
// recorder; the pointer is null when nothing is recorded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace twill::models::offload {

enum class lane : std::uint8_t { compute, disk_read, disk_write, host_to_device, device_to_host };

struct recorded_span {
  lane where = lane::compute;
  std::int32_t layer_or_head_part = 0; ///< a layer, or after the layers a part of the head
  std::int32_t micro_batch = -1;       ///< -1: the span serves all micro-batches
  double begin_seconds = 0;            ///< since the recorder was made
  double end_seconds = 0;
};

class span_recorder {
public:
  using clock = std::chrono::steady_clock;

  /// Holds at most `most` spans; further spans are dropped until take() empties the recorder.
  explicit span_recorder(std::size_t most = std::numeric_limits<std::size_t>::max())
      : most_(most) {}

  void add(lane where, std::int32_t layer_or_head_part, std::int32_t micro_batch,
           clock::time_point begin) {
    const auto now = clock::now();
    const std::lock_guard lock(mutex_);
    if (spans_.size() >= most_) return;
    spans_.push_back({where, layer_or_head_part, micro_batch, seconds(begin), seconds(now)});
  }
  std::vector<recorded_span> spans() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }

  /// Returns the spans recorded so far and removes them from the recorder.
  std::vector<recorded_span> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(spans_, {});
  }
  /// Converts a time to the time scale of the spans: seconds since the recorder was made.
  double seconds_at(clock::time_point t) const { return seconds(t); }

private:
  double seconds(clock::time_point t) const {
    return std::chrono::duration<double>(t - start_).count();
  }
  const std::size_t most_;
  const clock::time_point start_ = clock::now();
  mutable std::mutex mutex_;
  std::vector<recorded_span> spans_;
};

/// Measures one span, which begins when the span_clock is constructed. end() adds the span to the
/// recorder, if there is one.
class span_clock {
public:
  explicit span_clock(span_recorder* to) : to_(to) {
    if (to_ != nullptr) begin_ = span_recorder::clock::now();
  }
  void end(lane where, std::int32_t layer_or_head_part, std::int32_t micro_batch = -1) const {
    if (to_ != nullptr) to_->add(where, layer_or_head_part, micro_batch, begin_);
  }

private:
  span_recorder* to_;
  span_recorder::clock::time_point begin_{};
};

} // namespace twill::models::offload
