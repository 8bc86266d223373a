// cgroup: how much memory and processor time the control groups of this process allow.
//
// Any thread. Control groups of versions 1 and 2 are read, also where both are mounted. A group's
// limits hold for all groups below it, so every group from the process's own up to the root of the
// mount is read. A file that cannot be read sets no limit. The argument `root` is the root of the
// file system, so that tests can pass a tree of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace twill::gpu {

struct cgroup_limits {
  /// The lowest memory.max or memory.high of all groups (memory.limit_in_bytes in version 1).
  std::optional<std::int64_t> memory_bytes;
  /// Bytes that may still be taken before a limit is reached: a group's limit minus its usage, for
  /// the group where this difference is lowest. Cached pages that the system would drop first do
  /// not count as usage.
  std::optional<std::int64_t> free_memory_bytes;
  /// Processor time that cpu.max (cpu.cfs_quota_us) grants, in processors.
  std::optional<double> processors;
};

cgroup_limits read_cgroup_limits(const std::filesystem::path& root = "/");

} // namespace twill::gpu
