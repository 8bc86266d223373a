// Signals as ordinary calls: one thread waits for SIGTERM, SIGINT and SIGHUP and calls a function.
//
// Make the object before any other thread exists: it blocks these signals in the calling thread,
// and later threads inherit that. The function runs on the waiting thread, never in a signal
// handler.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace twill::tools {

class signal_waiter {
public:
  signal_waiter();
  signal_waiter(const signal_waiter&) = delete;
  signal_waiter& operator=(const signal_waiter&) = delete;
  ~signal_waiter() { stop(); }

  /// Starts to wait. Signals that arrived since the constructor are delivered now. Call it once.
  void start(std::function<void(int signal)> on_signal);

  /// Once this returns, no call of the function is under way and none follows. Idempotent.
  void stop();

private:
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

} // namespace twill::tools
