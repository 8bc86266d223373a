// kokkos_abort: logs a line when Kokkos aborts the process because of a lost GPU. Before each
// launch on a GPU Kokkos checks CUDA's state and calls abort() if an earlier kernel has faulted, so
// the executor gets no error that it could handle. Only another process can then use the GPU, so
// this process has to end in any case. The signal handler makes it end in the same way as when a
// copy or the wait for one detects the fault first: with a line in the log and exit status 1.
#pragma once

namespace twill::gpu::detail {

/// A guard object: while it exists, its thread is inside a call of Kokkos for a GPU. Guards do not
/// nest.
class kokkos_call {
public:
  kokkos_call() noexcept { under_way() = true; }
  kokkos_call(const kokkos_call&) = delete;
  kokkos_call& operator=(const kokkos_call&) = delete;
  ~kokkos_call() { under_way() = false; }

  static bool& under_way() noexcept {
    thread_local bool is = false;
    return is;
  }
};

/// Installs a handler of SIGABRT. If a thread that holds a kokkos_call aborts and `is_lost` returns
/// true, the handler ends the process with a line in the log and exit status 1; an alarm ends the
/// process if the handler takes longer than `most_seconds`. Any other abort() has the effect that
/// it had before. A later call of this function only replaces the arguments. Calls must not
/// overlap.
void log_aborts_of_kokkos(bool (*is_lost)(), unsigned most_seconds = 5);

} // namespace twill::gpu::detail
