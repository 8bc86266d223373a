// Signals as ordinary calls: one thread waits for SIGTERM, SIGINT and SIGHUP, another calls a
// function for each.
//
// Make the object before any other thread exists: it blocks these signals in the calling thread,
// and later threads inherit that. The function runs on a thread of its own, never in a signal
// handler. The third SIGTERM or SIGINT ends the process at once, also while the function hangs, and
// until the object is destroyed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace twill::tools {

class signal_waiter {
public:
  signal_waiter();
  signal_waiter(const signal_waiter&) = delete;
  signal_waiter& operator=(const signal_waiter&) = delete;
  ~signal_waiter();

  /// Starts to call the function. Signals that arrived since the constructor are delivered now.
  /// Call it once.
  void start(std::function<void(int signal)> on_signal);

  /// Once this returns, no call of the function is under way and none follows. Idempotent.
  void stop();

private:
  void wait();
  void deliver();

  std::mutex mutex_; ///< guards what follows
  std::condition_variable changed_;
  std::deque<int> arrived_;
  bool stopping_ = false;
  bool ending_ = false; ///< the waiting thread is to end

  std::function<void(int)> on_signal_;
  std::thread waiting_, delivering_;
};

} // namespace twill::tools
