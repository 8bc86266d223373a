// nvidia_versions: how NVIDIA numbers GPU generations and CUDA versions, and which drivers run
// which builds. The functions are pure.
#pragma once

#include <string>

namespace twill::gpu {

/// The compute capability (80 is 8.0) of the oldest generation of GPUs that twill has kernels for.
inline constexpr int oldest_capability = 80;

/// The text of a compute capability: 86 gives "8.6".
inline std::string capability(int arch) {
  return std::to_string(arch / 10) + "." + std::to_string(arch % 10);
}

/// The text of a CUDA version number: 12040 gives "12.4".
inline std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// Whether a driver for CUDA version `driver` runs the machine code of programs that were built
/// with CUDA version `build`: a driver runs builds of its own and of older major versions.
constexpr bool driver_runs(int driver, int build) {
  return driver / 1000 >= build / 1000;
}

} // namespace twill::gpu
