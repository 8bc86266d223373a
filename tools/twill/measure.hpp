// measure: measures the speeds of the memory tiers for `twill doctor`: of copies between host and
// device memory, and of reading from disk. Each call takes up to about a second and blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpu/device.hpp"

namespace twill::tools {

/// Bytes per second between host memory and device memory.
struct link_bandwidth {
  double upload = 0;
  double download = 0;
};
/// Returns nothing when the device has no room for the test buffer.
std::optional<link_bandwidth> measure_link(gpu::device& dev);

/// Bytes per second of reading a file from its beginning to its end.
struct disk_bandwidth {
  double cold = 0;   ///< after asking the kernel to drop the file from its page cache
  double cached = 0; ///< second reading, from the page cache
};
/// Reads at most `most_bytes` of the file. Returns nothing when the file cannot be read, as with an
/// empty path, or consists mostly of holes.
std::optional<disk_bandwidth> measure_disk(const std::string& path, std::int64_t most_bytes);

/// Returns the file of a model that measure_disk() should read: the path itself, or the largest
/// file if the path is a folder. The result is empty when there is no such file.
std::string weights_file(const std::string& model_path);

} // namespace twill::tools
