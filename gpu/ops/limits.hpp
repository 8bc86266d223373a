// machine_limits: what a device can do at most, measured, to hold kernels against.
//
// Executor thread only; takes about a second and allocates 512 MiB of device memory meanwhile.
#pragma once

#include "gpu/device.hpp"

namespace twill::gpu {

struct machine_limits {
  double read_bytes_per_s = 0; ///< all threads reading memory that no cache holds
  /// Multiply-adds in registers, by all threads, each counting as two operations, as the kernels of
  /// a compute type issue them; 0 where this backend has no such measurement.
  double f32_ops_per_s = 0, bf16_ops_per_s = 0, int8_ops_per_s = 0;
};

result<machine_limits> measure_limits(device& dev);

} // namespace twill::gpu
