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

  /// Starts to wait; signals that came before are delivered now. Call once.
  void start(std::function<void(int signal)> on_signal);

  /// No call of the function is under way or comes after this. Idempotent.
  void stop();

private:
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

} // namespace twill::tools
