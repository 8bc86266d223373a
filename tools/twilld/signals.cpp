#include "tools/twilld/signals.hpp"

#include <cstdlib>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <utility>

#include "config/base/log.hpp"

namespace twill::tools {
namespace {

constexpr std::chrono::milliseconds longest_flush{100};

sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, s);
  return set;
}

} // namespace

signal_waiter::signal_waiter() {
  const sigset_t set = waited_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // With SIGPIPE and SIGXFSZ ignored, write() reports a closed socket or a file size limit as an
  // error instead of ending the process. SIGUSR1 and SIGUSR2 are ignored because other daemons
  // reopen their log on them, and tools written for those daemons may send them to twilld.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (int s : {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2})
    sigaction(s, &ignore, nullptr);
}

signal_waiter::~signal_waiter() {
  stop();
  if (!waiting_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  pthread_kill(waiting_.native_handle(), SIGHUP); // wakes sigwait
  waiting_.join();
}

void signal_waiter::start(std::function<void(int)> on_signal) {
  on_signal_ = std::move(on_signal);
  waiting_ = std::thread([this] { wait(); });
  delivering_ = std::thread([this] { deliver(); });
}

void signal_waiter::stop() {
  if (!delivering_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  delivering_.join();
}

/// The waiting thread does nothing that could block for long, so that it always receives the third
/// signal.
void signal_waiter::wait() {
  const sigset_t set = waited_signals();
  for (int stops = 0;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      if (arrived_.size() < 16) arrived_.push_back(signal); // more SIGHUPs than that add nothing
    }
    if (signal != SIGHUP && ++stops == 3) {
      log::flush(longest_flush);
      _exit(EXIT_FAILURE);
    }
    changed_.notify_one();
  }
}

void signal_waiter::deliver() {
  for (;;) {
    int signal = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !arrived_.empty(); });
      if (stopping_) return;
      signal = arrived_.front();
      arrived_.pop_front();
    }
    on_signal_(signal);
  }
}

} // namespace twill::tools
