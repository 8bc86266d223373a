// nvidia_versions: how NVIDIA counts generations of GPUs and versions of CUDA, and which of them go
// together. Pure.
#pragma once

#include <string>

namespace twill::gpu {

/// The oldest generation of GPUs, by its compute capability, that twill has kernels for.
inline constexpr int oldest_capability = 80;

/// A generation of GPUs by its compute capability: 86 is 8.6.
inline std::string capability(int arch) {
  return std::to_string(arch / 10) + "." + std::to_string(arch % 10);
}

/// A version as CUDA counts it: 12040 is 12.4.
inline std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// Whether a driver for CUDA `driver` runs programs that were built with CUDA `build`, as far as
/// their machine code goes: those of its major version and of older ones.
constexpr bool driver_runs(int driver, int build) {
  return driver / 1000 >= build / 1000;
}

} // namespace twill::gpu
