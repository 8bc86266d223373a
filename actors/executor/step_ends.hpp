// step_ends: waits for the ends of steps on the device in place of the executor's thread, which
// launches the next step meanwhile.
//
// Made, used and destroyed on the executor's thread; a thread of its own waits, which is the only
// other one that knows the device, and calls `done` for each step, in order. It must not outlive
// its device. A device that refuses a marker is device_lost.
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

  /// The step that was launched last is under way. `done` is called when wait() would not wait, and
  /// again after some milliseconds where it throws std::bad_alloc.
  void add(std::function<void()> done);
  /// Waits for the oldest step under way, which is under way no longer.
  gpu::result<nothing> wait();

private:
  struct step {
    gpu::marker end;
    std::function<void()> done;
    std::optional<gpu::result<nothing>> outcome; ///< once it has ended
  };
  void watch();
  bool report_end(const std::function<void()>& done, std::unique_lock<std::mutex>& lock);

  gpu::device& dev_;
  std::array<step, most> steps_; ///< a step's place is its number modulo `most`
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t added_ = 0, ended_ = 0, taken_ = 0;
  bool stopping_ = false;
  std::thread watcher_; ///< last, so that it ends before the rest does
};

} // namespace twill::actors
