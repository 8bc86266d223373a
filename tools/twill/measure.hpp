// Measured speeds of the tiers, for `twill doctor`. Each call takes up to about a second and
// blocks.
#pragma once

#include <cstdint>
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

/// Bytes per second of reading a file front to back.
struct disk_bandwidth {
  double cold = 0;   ///< after asking the kernel to drop the file from its page cache
  double cached = 0; ///< again, from the page cache
};
/// Reads `most_bytes` at most. Nothing for what cannot be read, such as a path that is empty, or is
/// mostly holes.
std::optional<disk_bandwidth> measure_disk(const std::string& path, std::int64_t most_bytes);

/// The file that a model's bytes come from: the path itself, or the largest file of a folder; empty
/// where there is none.
std::string weights_file(const std::string& model_path);

} // namespace twill::tools
