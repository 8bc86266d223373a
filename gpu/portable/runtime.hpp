// Starts Kokkos, for files that do not include Kokkos headers.
#pragma once

#include <cstdint>
#include <string>

namespace twill::gpu::detail {

/// The first call starts Kokkos with `threads` host threads; every call enables the calling thread
/// to launch portable kernels. Returns the version and execution space of Kokkos, for example
/// "Kokkos 3.4.1 OpenMP". Any thread.
std::string start_portable(std::int32_t threads);

} // namespace twill::gpu::detail
