// Measured speeds of the tiers, for `twill doctor`. Each call takes up to about a second and
// blocks.
#pragma once

#include <optional>
#include <string>

#include "gpu/device.hpp"

namespace twill::tools {

/// Bytes per second between host memory and the device's.
struct link_bandwidth {
  double upload = 0;
  double download = 0;
};
/// Nothing when the device has no room for the test's buffer.
std::optional<link_bandwidth> measure_link(gpu::device& dev);

/// Bytes per second of reading the file front to back, 512 MiB at most.
struct disk_bandwidth {
  double cold = 0;   ///< after asking the kernel to drop the file from its page cache
  double cached = 0; ///< again, from the page cache
};
std::optional<disk_bandwidth> measure_disk(const std::string& path);

} // namespace twill::tools
