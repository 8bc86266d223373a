// Counts the kernels that this process has launched on GPUs. A test can thus check that a GPU
// computed, and a benchmark can report the launches per step. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace twill::gpu::detail {

inline std::atomic<std::int64_t> launches{0};

inline void count_launch() {
  launches.fetch_add(1, std::memory_order_relaxed);
}

} // namespace twill::gpu::detail
