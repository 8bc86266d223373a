// How many kernels this process has launched on GPUs, so that a test can show that it computed
// there and a benchmark can tell the launches of a step. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace twill::gpu::detail {

inline std::atomic<std::int64_t> launches{0};

inline void count_launch() {
  launches.fetch_add(1, std::memory_order_relaxed);
}

} // namespace twill::gpu::detail
