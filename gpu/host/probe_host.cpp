// The host implementation of peak_rates.hpp.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/detail/probe_backend.hpp"
#include "gpu/host/thread_pool.hpp"
#include "gpu/linear/host/kernels.hpp"

namespace twill::gpu::detail {

namespace {

std::uint64_t read(device& dev, const std::uint64_t* words, std::int64_t n) {
  constexpr std::int64_t part_words = std::int64_t{1} << 18;
  std::atomic<std::uint64_t> total{0};
  dev.pool().run(n / part_words, [&](std::int64_t part) {
    std::uint64_t sum = 0;
    for (std::int64_t i = part * part_words; i < (part + 1) * part_words; ++i)
      sum += words[i];
    total.fetch_add(sum, std::memory_order_relaxed);
  });
  return total;
}

void copy(device& dev, void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t part_bytes = std::size_t{1} << 21;
  dev.pool().run(static_cast<std::int64_t>((bytes + part_bytes - 1) / part_bytes),
                 [&](std::int64_t part) {
                   const std::size_t at = static_cast<std::size_t>(part) * part_bytes;
                   std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                               std::min(part_bytes, bytes - at));
                 });
}

/// The best of a few runs, since other processes can only slow a run down.
double peak(device& dev, compute_type type) {
  using clock = std::chrono::steady_clock;
  const host::kernels& kernels = host::kernels_for(dev.isa());
  constexpr std::int64_t rounds = 100000;
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    std::atomic<std::int64_t> operations{0};
    const auto start = clock::now();
    dev.pool().run(dev.info().threads, [&](std::int64_t) {
      alignas(64) float sink[16];
      operations.fetch_add(kernels.spin(type, rounds, sink), std::memory_order_relaxed);
    });
    const std::chrono::duration<double> took = clock::now() - start;
    best = std::max(best, static_cast<double>(operations.load()) / took.count());
  }
  return best;
}

peak_rates peaks(device& dev) {
  return {peak(dev, compute_type::f32), peak(dev, compute_type::bf16),
          peak(dev, compute_type::int8)};
}

} // namespace

constinit const probe_backend host_probe{.read = read, .peaks = peaks, .copy = copy};

} // namespace twill::gpu::detail
