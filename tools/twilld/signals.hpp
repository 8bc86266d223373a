// signals: delivers SIGTERM, SIGINT and SIGHUP as ordinary function calls. One thread waits for the
// signals, a second thread calls a function for each of them.
//
// Create the object before any other thread exists: the constructor blocks these signals in the
// calling thread, and later threads inherit that. The function runs on the second thread, never in
// a signal handler. Until the object is destroyed, the third SIGTERM or SIGINT ends the process at
// once, even if the function hangs.
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

  /// Starts to call `on_signal`. Signals that have arrived since the constructor are delivered now.
  /// Call start() only once.
  void start(std::function<void(int signal)> on_signal);

  /// Stops delivery: after stop() returns, no call of `on_signal` is running and none will follow.
  /// Idempotent.
  void stop();

private:
  void wait();
  void deliver();

  std::mutex mutex_; ///< guards the members below, up to `ending_`
  std::condition_variable changed_;
  std::deque<int> arrived_;
  bool stopping_ = false;
  bool ending_ = false; ///< asks the waiting thread to end

  std::function<void(int)> on_signal_;
  std::thread waiting_, delivering_;
};

} // namespace twill::tools
