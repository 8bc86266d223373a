// What a device can do at most, measured, to hold kernels against.
//
// Executor thread only. Each measurement takes a fraction of a second; a read_probe holds 512 MiB
// of device memory and must not outlive its device.
#pragma once

#include <utility>

#include "gpu/device.hpp"

namespace twill::gpu {

/// Reads memory that no cache holds, with all threads. Machines that share their memory with
/// others give more in one second than in the next: ask anew beside each thing to compare.
class read_probe {
public:
  static result<read_probe> make(device& dev);
  /// Median of a few passes.
  double bytes_per_s() const;

private:
  read_probe(device& dev, buffer memory) : dev_(&dev), memory_(std::move(memory)) {}

  device* dev_;
  buffer memory_;
};

/// Multiply-adds in registers, by all threads, each counting as two operations, as the kernels of a
/// compute type issue them; 0 where this backend has no such measurement.
struct peak_rates {
  double f32_ops_per_s = 0, bf16_ops_per_s = 0, int8_ops_per_s = 0;
};

peak_rates measure_peaks(device& dev);

} // namespace twill::gpu
