// held_signals: keeps SIGINT and SIGTERM from ending the process between runs, so that results are
// written and servers are ended in good order. A run's own watcher still takes them while it runs.
//
// Make it on the main thread before other threads start.
#pragma once

#include <csignal>
#include <ctime>

#include <chrono>

namespace twill::bench {

class held_signals {
public:
  held_signals() {
    sigemptyset(&wanted_);
    sigaddset(&wanted_, SIGINT);
    sigaddset(&wanted_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &wanted_, &before_);
  }
  ~held_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  held_signals(const held_signals&) = delete;
  held_signals& operator=(const held_signals&) = delete;

  /// True as soon as one came.
  bool came_within(std::chrono::milliseconds span) const {
    const timespec limit{span.count() / 1000, span.count() % 1000 * 1'000'000};
    return sigtimedwait(&wanted_, nullptr, &limit) > 0;
  }

  /// One came while they were held, here or by another holder, and nobody has taken it yet.
  static bool pending() {
    sigset_t came{};
    sigpending(&came);
    return sigismember(&came, SIGINT) == 1 || sigismember(&came, SIGTERM) == 1;
  }

private:
  sigset_t wanted_{}, before_{};
};

} // namespace twill::bench
