// probe_backend: the functions behind gpu/peak_rates.hpp and gpu/launch_timer.hpp, one table per
// backend. The device chooses its table once (gpu/detail/op_backends.hpp). Executor thread only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/launch_timer.hpp"
#include "gpu/peak_rates.hpp"

namespace twill::gpu::detail {

struct probe_backend {
  /// Returns the sum of `n` words, which it reads as fast as the device can. `n` is a multiple of
  /// 2^18.
  std::uint64_t (*read)(device& dev, const std::uint64_t* words, std::int64_t n);
  peak_rates (*peaks)(device& dev);
  /// Begins a copy within the device's memory, as fast as the device can; null: copies cannot be
  /// measured.
  void (*copy)(device& dev, void* to, const void* from, std::size_t bytes) = nullptr;
  /// read() without waiting for the sum, for time_launches(); null: time_launches() uses read()
  /// instead.
  void (*begin_read)(device& dev, const std::uint64_t* words, std::int64_t n) = nullptr;
  /// Implement time_launches() and cache_bytes(); null: the host's implementation is used.
  launch_times (*time)(device& dev, const timing_plan& plan,
                       const std::function<void()>& f) = nullptr;
  std::int64_t (*cache_bytes)(const device& dev) = nullptr;
};

extern const probe_backend host_probe;     ///< host/probe_host.cpp
extern const probe_backend portable_probe; ///< portable/backends.cpp

} // namespace twill::gpu::detail
