// cgroup: what the control groups of this process let it have, of memory and of processor time.
//
// Any thread. Versions 1 and 2, also side by side; a group's limits hold for all below it, so every
// group from the process's own up to the root of the mount is read. What cannot be read sets no
// limit. The functions take the root of the file system, so that tests can bring a tree of their
// own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace twill::gpu {

struct cgroup_limits {
  /// The least of memory.max and memory.high (memory.limit_in_bytes in version 1).
  std::optional<std::int64_t> memory_bytes;
  /// What may be taken before such a limit is reached: each limit less what its group uses, without
  /// the cached pages that the system would drop first.
  std::optional<std::int64_t> free_memory_bytes;
  /// Processors' worth of time that cpu.max (cpu.cfs_quota_us) grants.
  std::optional<double> processors;
};

cgroup_limits read_cgroup_limits(const std::filesystem::path& root = "/");

} // namespace twill::gpu
