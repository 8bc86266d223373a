// held_signals: blocks SIGINT and SIGTERM, so that they do not end the process between runs, before
// results are written and servers are shut down. During a run, the run's watcher (watcher.hpp)
// still receives these signals.
//
// Create the object on the main thread before other threads start.
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

  /// Waits for up to `span`. Returns true as soon as a signal arrives.
  bool came_within(std::chrono::milliseconds span) const {
    const timespec limit{span.count() / 1000, span.count() % 1000 * 1'000'000};
    return sigtimedwait(&wanted_, nullptr, &limit) > 0;
  }

  /// True when SIGINT or SIGTERM has arrived while this or another held_signals blocked it, and no
  /// code has received it yet.
  static bool pending() {
    sigset_t came{};
    sigpending(&came);
    return sigismember(&came, SIGINT) == 1 || sigismember(&came, SIGTERM) == 1;
  }

private:
  sigset_t wanted_{}, before_{};
};

} // namespace twill::bench
