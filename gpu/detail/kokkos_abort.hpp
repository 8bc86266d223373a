// kokkos_abort: what the process says where Kokkos ends it. Before each launch on a GPU Kokkos asks
// CUDA for its state, and calls abort() where an earlier kernel has faulted: no error comes back
// that an executor could answer. Only another process can use the GPU then, so this one ends in any
// case; here it ends as it does where a copy or a marker sees the fault first: with a line in the
// log and exit status 1.
#pragma once

namespace twill::gpu::detail {

/// While one lives, this thread is in a call of Kokkos for a GPU. Calls do not nest.
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

/// From now on an abort() of a thread in such a call ends the process with a line in the log and
/// exit status 1 where `is_lost` says that the GPU is lost; an alarm ends it where that takes
/// longer than `most_seconds`. Any other abort() does what it did before. A later call only
/// replaces the arguments. One call at a time.
void log_aborts_of_kokkos(bool (*is_lost)(), unsigned most_seconds = 5);

} // namespace twill::gpu::detail
