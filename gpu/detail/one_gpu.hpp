// one_gpu: which GPU this process uses, and whether the kernels of this build run on it.
//
// Kokkos binds to one GPU when it starts, for as long as the process lives. Nothing in here calls
// CUDA. Thread safety: use() takes the one mutex; the rest are pure functions.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "config/base/result.hpp"
#include "gpu/errc.hpp"

namespace twill::gpu::detail {

class one_gpu {
public:
  /// Has `start` begin to use GPU `id`, unless another is in use. The process is bound to the GPU
  /// once `start` has succeeded; it is asked again each time, and binds nothing where it fails.
  template <class F>
  result<nothing> use(std::int32_t id, F&& start) {
    const std::lock_guard lock(mutex_);
    if (bound_ >= 0 && bound_ != id)
      return failure{errc::not_built, "device.id must stay " + std::to_string(bound_) +
                                          " in this process, got " + std::to_string(id)};
    result<nothing> started = std::forward<F>(start)();
    if (started.ok()) bound_ = id;
    return started;
  }

  /// Whether a GPU is in use.
  bool is_bound() {
    const std::lock_guard lock(mutex_);
    return bound_ >= 0;
  }

private:
  std::mutex mutex_;
  std::int32_t bound_ = -1;
};

/// A generation of GPUs by its compute capability: 86 is 8.6.
inline std::string capability(int arch) {
  return std::to_string(arch / 10) + "." + std::to_string(arch % 10);
}

/// A version as CUDA counts it: 12040 is 12.4.
inline std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// What to build for a GPU of generation `found`, or that no build can use it.
inline std::string advice_for(int found) {
  constexpr int oldest = 80;
  if (found < oldest)
    return "set device.kind = \"host\": twill has no kernels for GPUs older than " +
           capability(oldest);
  return "build with `TWILL_CUDA_ARCH=" + std::to_string(found) +
         " tools/build cuda`, or set device.kind = \"host\"";
}

/// Why there is no GPU for device.kind = "cuda". `driver`: the newest CUDA that the machine's
/// driver runs, 0 where it has no driver; `runtime`: the CUDA of this build.
inline failure no_gpu(int driver, int runtime, const std::string& cuda_says) {
  const std::string needs = "device.kind = \"cuda\" needs ";
  const std::string build = cuda_version(runtime);
  if (driver == 0)
    return {errc::not_built, needs + "NVIDIA's driver for CUDA " + build +
                                 ", and this machine has no driver: install it, so that nvidia-smi "
                                 "lists the GPU, or set device.kind = \"host\""};
  if (driver / 1000 < runtime / 1000)
    return {errc::not_built, needs + "a driver for CUDA " + build +
                                 " in this build, and this machine's is for CUDA " +
                                 cuda_version(driver) + ": update it, build twill with CUDA " +
                                 std::to_string(driver / 1000) + ", or set device.kind = \"host\""};
  return {errc::not_built, needs + "a GPU, and CUDA says \"" + cuda_says +
                               "\": nvidia-smi must list it and CUDA_VISIBLE_DEVICES must not hide "
                               "it, or set device.kind = \"host\""};
}

/// Kokkos runs on the generation that it was built for and on later ones. `built` is 0 where Kokkos
/// does not say.
inline result<nothing> check_kokkos_arch(int built, int found, const std::string& gpu) {
  if (built <= found) return nothing{};
  return failure{errc::not_built, "this build's Kokkos is for GPUs of compute capability " +
                                      capability(built) + " or later, but " + gpu + " has " +
                                      capability(found) + ": " + advice_for(found)};
}

/// `built`: the generations that our own kernels were compiled for.
inline failure no_kernels_for(std::span<const int> built, int found, const std::string& gpu) {
  std::string all;
  for (const int arch : built)
    all += (all.empty() ? "" : ", ") + capability(arch);
  return {errc::not_built, "this build's kernels are for GPUs of compute capability " + all +
                               ", but " + gpu + " has " + capability(found) + ": " +
                               advice_for(found)};
}

} // namespace twill::gpu::detail
