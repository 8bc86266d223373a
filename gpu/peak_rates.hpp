// peak_rates: measures the highest memory and arithmetic rates of a device, which kernels are
// compared with.
//
// Executor thread only. Each measurement takes a fraction of a second; a memory_probe holds 512 MiB
// of device memory and must not outlive its device.
#pragma once

#include <utility>

#include "gpu/device.hpp"

namespace twill::gpu {

/// Reads and copies memory that no cache holds, as fast as the device can (on a host with all
/// threads). On a machine whose memory bandwidth is shared with other programs the rate changes
/// from second to second, so measure again next to each measurement of a kernel.
class memory_probe {
public:
  static result<memory_probe> make(device& dev);
  /// The median of a few passes.
  double read_bytes_per_s() const;
  /// The median of a few copies; each copied byte counts twice, since it is read and written. 0
  /// where the backend cannot measure copies.
  double copy_bytes_per_s() const;

private:
  memory_probe(device& dev, buffer memory) : dev_(&dev), memory_(std::move(memory)) {}

  device* dev_;
  buffer memory_;
};

/// Rates of multiply-adds in registers by all threads, with the instructions that the kernels of
/// the compute type use; each multiply-add counts as two operations. 0 where the backend cannot
/// measure a rate.
struct peak_rates {
  double f32_ops_per_s = 0, bf16_ops_per_s = 0, int8_ops_per_s = 0;
};

peak_rates measure_peaks(device& dev);

} // namespace twill::gpu
