#include "gpu/machine.hpp"

#include <algorithm>
#include <fstream>
#include <thread>

#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

namespace twill::gpu::machine {

std::int32_t usable_cores() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()));
}

std::int64_t memory_bytes() {
  auto total = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(file);
    std::int64_t limit = 0; // "max" fails to parse: no limit
    if (in >> limit && limit > 0) total = std::min(total, limit);
  }
  return total;
}

std::int64_t available_bytes() {
  const std::int64_t most = memory_bytes();
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
