// kokkos_abort: how the process ends where Kokkos ends it. Before each launch on a GPU Kokkos asks
// CUDA for its state, and calls abort() where an earlier kernel has faulted: no error comes back
// that an executor could answer. Only another process can use the GPU then, so this one ends in any
// case; here it ends as it does where the fault is seen first by a copy or a marker: with one line
// in the log and exit status 1.
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

/// From now on an abort() of a thread in such a call ends the process with a line and exit status
/// 1. Any other abort() does what it did before. Idempotent; any thread.
void end_plainly_when_kokkos_aborts();

} // namespace twill::gpu::detail
