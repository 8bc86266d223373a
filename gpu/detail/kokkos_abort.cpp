#include "gpu/detail/kokkos_abort.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "config/base/log.hpp"

namespace twill::gpu::detail {

namespace {

struct sigaction before {};
std::atomic<bool (*)()> gpu_is_lost{nullptr};
std::atomic<unsigned> seconds_to_end{0};

/// After this call the signal handler takes locks, for example those of CUDA and of the log, and
/// the code that called abort() may already hold one of them. An alarm ends the process in case of
/// such a deadlock.
void set_alarm() {
  std::signal(SIGALRM, SIG_DFL);
  sigset_t alarms;
  ::sigemptyset(&alarms);
  ::sigaddset(&alarms, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
  ::alarm(seconds_to_end.load());
}

void on_abort(int signal) {
  if (kokkos_call::under_way()) {
    set_alarm();
    if (gpu_is_lost.load()()) {
      log::write_plain("the device is lost: a kernel failed on the GPU, and Kokkos ended the "
                       "process (its message precedes this line); only another process can use "
                       "the GPU");
      log::flush();
      ::_exit(EXIT_FAILURE);
    }
  }
  ::sigaction(signal, &before, nullptr);
  ::raise(signal); // which comes when this function returns
}

} // namespace

void log_aborts_of_kokkos(bool (*is_lost)(), unsigned most_seconds) {
  gpu_is_lost = is_lost;
  seconds_to_end = most_seconds;
  struct sigaction ours {};
  ours.sa_handler = on_abort;
  ::sigemptyset(&ours.sa_mask);
  struct sigaction found {};
  ::sigaction(SIGABRT, nullptr, &found);
  if (found.sa_handler == on_abort) return;
  before = found;
  ::sigaction(SIGABRT, &ours, nullptr);
}

} // namespace twill::gpu::detail
