#include "gpu/detail/kokkos_abort.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <mutex>

#include "config/base/log.hpp"

namespace twill::gpu::detail {

namespace {

struct sigaction before {};

/// Runs within abort(), which Kokkos called with no lock of ours, so the log may be written.
void on_abort(int signal) {
  if (kokkos_call::under_way()) {
    log::error("the device is lost: a kernel failed on the GPU, and Kokkos ended the process (its "
               "own words stand before this line); only another process can use the GPU: start "
               "twilld again, as a service manager does by itself");
    log::flush();
    ::_exit(EXIT_FAILURE);
  }
  ::sigaction(signal, &before, nullptr);
  ::raise(signal); // which comes when this function returns
}

} // namespace

void end_plainly_when_kokkos_aborts() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours {};
    ours.sa_handler = on_abort;
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(SIGABRT, &ours, &before);
  });
}

} // namespace twill::gpu::detail
