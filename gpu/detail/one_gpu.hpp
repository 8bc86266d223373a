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

private:
  std::mutex mutex_;
  std::int32_t bound_ = -1;
};

/// A generation of GPUs by its compute capability: 86 is 8.6.
inline std::string capability(int arch) {
  return std::to_string(arch / 10) + "." + std::to_string(arch % 10);
}

/// Kokkos runs on the generation that it was built for and on later ones. `built` is 0 where Kokkos
/// does not say.
inline result<nothing> check_kokkos_arch(int built, int found, const std::string& gpu) {
  if (built <= found) return nothing{};
  return failure{errc::not_built,
                 "this build's Kokkos is for GPUs of compute capability " + capability(built) +
                     " or later, but " + gpu + " has " + capability(found) +
                     ": build with a Kokkos for it, or set device.kind = \"host\""};
}

/// `built`: the generations that our own kernels were compiled for.
inline failure no_kernels_for(std::span<const int> built, int found, const std::string& gpu) {
  std::string all;
  for (const int arch : built)
    all += (all.empty() ? "" : ", ") + capability(arch);
  return {errc::not_built, "this build's kernels are for GPUs of compute capability " + all +
                               ", but " + gpu + " has " + capability(found) +
                               ": build with -DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(found) +
                               ", or set device.kind = \"host\""};
}

} // namespace twill::gpu::detail
