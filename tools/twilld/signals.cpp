#include "tools/twilld/signals.hpp"

#include <pthread.h>
#include <signal.h>

namespace twill::tools {
namespace {

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
  // A socket that its client has closed is an error code, not a reason to die.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

void signal_waiter::start(std::function<void(int)> on_signal) {
  thread_ = std::thread([this, on_signal = std::move(on_signal)] {
    const sigset_t set = waited_signals();
    for (;;) {
      int signal = 0;
      if (sigwait(&set, &signal) != 0) continue;
      if (stopping_) return;
      on_signal(signal);
    }
  });
}

void signal_waiter::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  pthread_kill(thread_.native_handle(), SIGHUP); // wakes sigwait
  thread_.join();
}

} // namespace twill::tools
