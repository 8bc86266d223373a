#include "gpu/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace twill::gpu {

namespace fs = std::filesystem;

namespace {

/// Version 1 writes "no limit" as the largest multiple of a page.
constexpr std::int64_t no_limit = std::int64_t{1} << 60;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);)
    parts.push_back(part);
  return parts;
}

bool lists(const std::string& options, const std::string& wanted) {
  const auto all = split(options, ',');
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

/// The positive number in a file of one word; std::nullopt for "max" and for anything else that is
/// not a number.
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t n = 0;
  if (!(in >> n) || n < 0 || n >= no_limit) return std::nullopt;
  return n;
}

/// The value of `key` in a file of lines "key value"; 0 when there is none.
std::int64_t value_in(const fs::path& file, const std::string& wanted) {
  std::ifstream in(file);
  std::string key;
  for (std::int64_t n = 0; in >> key >> n;)
    if (key == wanted) return n;
  return 0;
}

template <class T>
void lower(std::optional<T>& limit, T to) {
  limit = limit ? std::min(*limit, to) : to;
}

/// Where a hierarchy is mounted, and which of its groups the mount shows as its root.
struct mount {
  fs::path point;
  std::string shown;
};

/// `controller`: empty for version 2.
std::optional<mount> find_mount(const fs::path& root, const std::string& controller) {
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    // "36 25 0:32 /shown /point options ... - type source super_options"
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const bool fits = controller.empty() ? after[0] == "cgroup2"
                                         : after[0] == "cgroup" && lists(after[2], controller);
    if (fits) return mount{root / fs::path(before[4]).relative_path(), before[3]};
  }
  return std::nullopt;
}

/// The folders of the process's group and of the groups above it, as far as the mount shows them.
std::vector<fs::path> groups(const fs::path& root, const std::string& controller) {
  const auto at = find_mount(root, controller);
  if (!at) return {};
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    // "4:cpu,cpuacct:/path" or "0::/path"
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool fits = controller.empty() ? controllers.empty() : lists(controllers, controller);
    if (!fits) continue;
    std::string path = line.substr(second + 1);
    // A container without a namespace of its own sees the path from outside.
    if (at->shown != "/" && path.starts_with(at->shown)) path = path.substr(at->shown.size());
    fs::path own = at->point / fs::path(path).relative_path();
    std::error_code error;
    if (!fs::is_directory(own, error) || path.find("..") != std::string::npos) own = at->point;
    std::vector<fs::path> all;
    for (; own != at->point && own.has_relative_path(); own = own.parent_path())
      all.push_back(own);
    all.push_back(at->point);
    return all;
  }
  return {at->point};
}

void limit_memory(cgroup_limits& limits, std::int64_t most, std::int64_t used,
                  std::int64_t droppable) {
  lower(limits.memory_bytes, most);
  lower(limits.free_memory_bytes,
        std::max<std::int64_t>(0, most - std::max<std::int64_t>(0, used - droppable)));
}

} // namespace

cgroup_limits read_cgroup_limits(const fs::path& root) {
  cgroup_limits limits;
  for (const fs::path& group : groups(root, "")) {
    const std::int64_t used = number_in(group / "memory.current").value_or(0);
    const std::int64_t droppable = value_in(group / "memory.stat", "inactive_file");
    for (const char* file : {"memory.max", "memory.high"})
      if (const auto most = number_in(group / file)) limit_memory(limits, *most, used, droppable);
    std::ifstream in(group / "cpu.max");
    double quota = 0, period = 0; // "max" fails to parse
    if (in >> quota >> period && quota > 0 && period > 0) lower(limits.processors, quota / period);
  }
  for (const fs::path& group : groups(root, "memory"))
    if (const auto most = number_in(group / "memory.limit_in_bytes"))
      limit_memory(limits, *most, number_in(group / "memory.usage_in_bytes").value_or(0),
                   value_in(group / "memory.stat", "total_inactive_file"));
  for (const fs::path& group : groups(root, "cpu")) {
    const auto quota = number_in(group / "cpu.cfs_quota_us"); // -1: no limit
    const auto period = number_in(group / "cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0)
      lower(limits.processors, static_cast<double>(*quota) / static_cast<double>(*period));
  }
  return limits;
}

} // namespace twill::gpu
