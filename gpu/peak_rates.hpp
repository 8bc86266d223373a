// peak_rates: what a device can do at most, measured, to compare kernels with.
//
// Executor thread only. Each measurement takes a fraction of a second; a memory_probe holds 512 MiB
// of device memory and must not outlive its device.
#pragma once

#include <utility>

#include "gpu/device.hpp"

namespace twill::gpu {

/// Reads and copies memory that no cache holds, as fast as the device can: on a host with all
/// threads. A machine that shares its memory with others gives more in one second than in the next,
/// so measure anew beside each kernel.
class memory_probe {
public:
  static result<memory_probe> make(device& dev);
  /// The median of a few passes.
  double read_bytes_per_s() const;
  /// The median of a few copies; a byte that is copied counts twice, since it is read and written.
  /// 0 where the backend has no such measurement.
  double copy_bytes_per_s() const;

private:
  memory_probe(device& dev, buffer memory) : dev_(&dev), memory_(std::move(memory)) {}

  device* dev_;
  buffer memory_;
};

/// Rates of multiply-adds in registers by all threads, issued as the kernels of a compute type
/// issue them; each counts as two operations. 0 where the backend has no such measurement.
struct peak_rates {
  double f32_ops_per_s = 0, bf16_ops_per_s = 0, int8_ops_per_s = 0;
};

peak_rates measure_peaks(device& dev);

} // namespace twill::gpu
