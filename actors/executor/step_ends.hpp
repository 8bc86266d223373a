// step_ends: waits for the ends of steps on the device, so that the executor's thread can launch
// the next step meanwhile.
//
// Created, used and destroyed on the executor's thread. A thread of its own waits for the steps and
// calls `done` for each step, in order; no other thread beside these two uses the device. The
// object must not outlive its device. The end of a step is noticed by a gpu::marker, which is
// recorded in the device's work behind the step and can be waited for. If the device cannot record
// the marker, wait() fails with device_lost.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "gpu/copy_stream.hpp"

namespace twill::actors {

class step_ends {
public:
  static constexpr std::size_t most = 2; ///< steps under way

  explicit step_ends(gpu::device& dev);
  step_ends(const step_ends&) = delete;
  step_ends& operator=(const step_ends&) = delete;
  ~step_ends();

  /// Adds the step that was launched last. `done` is called when the step has ended, so that wait()
  /// does not block for it. If `done` throws std::bad_alloc, it is called again after some
  /// milliseconds.
  void add(std::function<void()> done);
  /// Waits for the oldest step under way, and removes it.
  gpu::result<nothing> wait();

private:
  struct step {
    gpu::marker end;
    std::function<void()> done;
    std::optional<gpu::result<nothing>> outcome; ///< set once the step has ended
  };
  void watch();
  bool report_end(const std::function<void()>& done, std::unique_lock<std::mutex>& lock);

  gpu::device& dev_;
  std::array<step, most> steps_; ///< a step's place is its number modulo `most`
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t added_ = 0, ended_ = 0, taken_ = 0;
  bool stopping_ = false;
  std::thread watcher_; ///< declared last, so that it ends before the other members are destroyed
};

} // namespace twill::actors
