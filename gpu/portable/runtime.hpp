// Starting Kokkos, for files that do not include it.
#pragma once

#include <cstdint>
#include <string>

namespace twill::gpu::detail {

/// Starts Kokkos with `threads` host threads on its first call, and lets the calling thread launch
/// portable kernels. Returns what Kokkos is: "Kokkos 3.4.1 OpenMP". Any thread.
std::string start_portable(std::int32_t threads);

} // namespace twill::gpu::detail
