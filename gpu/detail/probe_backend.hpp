// probe_backend: the functions behind gpu/peak_rates.hpp, one table per backend. The device chooses
// its table once (gpu/detail/op_backends.hpp). Executor thread only.
#pragma once

#include <cstdint>

#include "gpu/peak_rates.hpp"

namespace twill::gpu::detail {

struct probe_backend {
  /// The sum of `n` words, a multiple of 2^18, which it reads as fast as the device can.
  std::uint64_t (*read)(device& dev, const std::uint64_t* words, std::int64_t n);
  peak_rates (*peaks)(device& dev);
};

extern const probe_backend host_probe;     ///< peak_rates.cpp
extern const probe_backend portable_probe; ///< portable/backends.cpp

} // namespace twill::gpu::detail
