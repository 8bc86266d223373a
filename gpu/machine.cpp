#include "gpu/machine.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#include "gpu/cgroup.hpp"

namespace twill::gpu::machine {

std::int32_t usable_cores() {
  auto cores = static_cast<std::int32_t>(std::thread::hardware_concurrency());
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
#endif
  if (const auto granted = read_cgroup_limits().processors)
    cores = std::min(cores, static_cast<std::int32_t>(std::ceil(*granted)));
  return std::max(1, cores);
}

std::int64_t memory_bytes() {
  const auto total = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::min(total, read_cgroup_limits().memory_bytes.value_or(total));
}

std::int64_t available_bytes() {
  const std::int64_t total = memory_bytes();
  const std::int64_t most = std::min(total, read_cgroup_limits().free_memory_bytes.value_or(total));
  std::ifstream in("/proc/meminfo");
  std::string key, rest;
  for (std::int64_t kilobytes = 0; in >> key >> kilobytes; std::getline(in, rest))
    if (key == "MemAvailable:") return std::min(most, kilobytes * 1024);
  return most;
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

} // namespace twill::gpu::machine
