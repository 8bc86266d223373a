// gpu_refusals: the error messages for a machine without a GPU, and for a GPU that this build has
// no kernels for. Each message says what the user can do. Pure: nothing in this file calls CUDA.
#pragma once

#include <span>
#include <string>

#include "config/base/result.hpp"
#include "gpu/errc.hpp"
#include "gpu/nvidia_versions.hpp"

namespace twill::gpu::detail {

/// Advice for a GPU of compute capability `found` (86 is 8.6): how to build twill for it, or that
/// no build supports it.
inline std::string advice_for(int found) {
  if (found < oldest_capability)
    return "set device.kind = \"host\": twill has no kernels for GPUs older than " +
           capability(oldest_capability);
  return "build with `TWILL_CUDA_ARCH=" + std::to_string(found) +
         " tools/build cuda`, or set device.kind = \"host\"";
}

/// The error that says why device.kind = "cuda" finds no GPU. `driver` is the newest CUDA version
/// that the machine's driver runs, or 0 where there is no driver; `runtime` is the CUDA version of
/// this build; `cuda_says` is CUDA's own error message.
inline failure no_gpu(int driver, int runtime, const std::string& cuda_says) {
  const std::string needs = "device.kind = \"cuda\" needs ";
  const std::string build = cuda_version(runtime);
  if (driver == 0)
    return {errc::not_built, needs + "NVIDIA's driver for CUDA " + build +
                                 ", and this machine has no driver: install it, so that nvidia-smi "
                                 "lists the GPU, or set device.kind = \"host\""};
  if (!driver_runs(driver, runtime))
    return {errc::not_built, needs + "a driver for CUDA " + build +
                                 " in this build, and this machine's is for CUDA " +
                                 cuda_version(driver) + ": update it, build twill with CUDA " +
                                 std::to_string(driver / 1000) + ", or set device.kind = \"host\""};
  return {errc::not_built, needs + "a GPU, and CUDA says \"" + cuda_says +
                               "\": nvidia-smi must list it and CUDA_VISIBLE_DEVICES must not hide "
                               "it, or set device.kind = \"host\""};
}

/// Checks that this build's Kokkos, which was built for compute capability `built`, runs on a GPU
/// of compute capability `found`: Kokkos runs on the generation that it was built for and on later
/// ones. `built` is 0 where Kokkos does not report its own.
inline result<nothing> check_kokkos_arch(int built, int found, const std::string& gpu) {
  if (built <= found) return nothing{};
  return failure{errc::not_built, "this build's Kokkos is for GPUs of compute capability " +
                                      capability(built) + " or later, but " + gpu + " has " +
                                      capability(found) + ": " + advice_for(found)};
}

/// The error for a GPU that twill's own kernels were not compiled for. `built` lists the compute
/// capabilities that they were compiled for.
inline failure no_kernels_for(std::span<const int> built, int found, const std::string& gpu) {
  std::string all;
  for (const int arch : built)
    all += (all.empty() ? "" : ", ") + capability(arch);
  return {errc::not_built, "this build's kernels are for GPUs of compute capability " + all +
                               ", but " + gpu + " has " + capability(found) + ": " +
                               advice_for(found)};
}

} // namespace twill::gpu::detail
