// span_recorder: which compute and which transfer ran when, for a picture of a schedule.
//
// Thread safety: add() from any thread. Streams and jobs hold a pointer that is null unless a
// picture was asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
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

  void add(lane where, std::int32_t layer_or_head_part, std::int32_t micro_batch,
           clock::time_point begin) {
    const auto now = clock::now();
    const std::lock_guard lock(mutex_);
    spans_.push_back({where, layer_or_head_part, micro_batch, seconds(begin), seconds(now)});
  }
  std::vector<recorded_span> spans() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }

private:
  double seconds(clock::time_point t) const {
    return std::chrono::duration<double>(t - start_).count();
  }
  const clock::time_point start_ = clock::now();
  mutable std::mutex mutex_;
  std::vector<recorded_span> spans_;
};

/// Measures from its construction; end() adds the span if there is a recorder.
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
