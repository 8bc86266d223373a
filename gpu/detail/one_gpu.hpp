// one_gpu: remembers which GPU this process uses.
//
// Kokkos binds to one GPU when it starts, for the rest of the process. Nothing in this file calls
// CUDA. Thread safety: use() and is_bound() lock the object's mutex.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "config/base/result.hpp"
#include "gpu/errc.hpp"

namespace twill::gpu::detail {

class one_gpu {
public:
  /// Calls `start`, which starts GPU `id`, unless another GPU is in use; then the result is an
  /// error. Once `start` has succeeded, the process is bound to the GPU. Every use() calls `start`
  /// again; a failed `start` does not bind the process.
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

} // namespace twill::gpu::detail
