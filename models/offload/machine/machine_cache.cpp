#include "models/offload/machine/machine_cache.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <utility>

#include "config/base/cache_folder.hpp"

namespace twill::models::offload {
namespace {

namespace fs = std::filesystem;

constexpr std::array rates = {
    std::pair{"device_flops", &machine_description::device_flops},
    std::pair{"device_bytes_per_s", &machine_description::device_bytes_per_s},
    std::pair{"host_flops", &machine_description::host_flops},
    std::pair{"host_bytes_per_s", &machine_description::host_bytes_per_s},
    std::pair{"h2d_bytes_per_s", &machine_description::h2d_bytes_per_s},
    std::pair{"d2h_bytes_per_s", &machine_description::d2h_bytes_per_s},
    std::pair{"disk_read_bytes_per_s", &machine_description::disk_read_bytes_per_s},
    std::pair{"disk_write_bytes_per_s", &machine_description::disk_write_bytes_per_s},
    std::pair{"unpacked_values_per_s", &machine_description::unpacked_values_per_s},
    std::pair{"device_kv_bytes_per_s", &machine_description::device_kv_bytes_per_s},
};

/// The stored values that are shares, from 0 to 1, and not rates.
constexpr std::array link_shares = {
    std::pair{"disk_read_device_share", &machine_description::disk_read_device_share},
    std::pair{"copy_device_share", &machine_description::copy_device_share},
};

std::optional<fs::path> file_of(const std::string& key) {
  const auto folder = cache_folder();
  if (!folder) return std::nullopt;
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%016zx.txt", std::hash<std::string>{}(key));
  return *folder / "machines" / name.data();
}

bool is_recent(const fs::path& file) {
  std::error_code failed;
  const auto written = fs::last_write_time(file, failed);
  return !failed &&
         fs::file_time_type::clock::now() - written < std::chrono::hours(24 * machine_cache_days);
}

} // namespace

std::optional<machine_description> remembered_machine(const std::string& key) {
  const auto file = file_of(key);
  if (!file || !is_recent(*file)) return std::nullopt;
  std::ifstream in(*file);
  std::string text;
  if (!std::getline(in, text) || text != key) return std::nullopt;
  machine_description on;
  for (const auto& [name, rate] : rates)
    if (!(in >> text >> on.*rate) || text != name || !(on.*rate > 0)) return std::nullopt;
  for (const auto& [name, share] : link_shares)
    if (!(in >> text >> on.*share) || text != name || !(on.*share >= 0)) return std::nullopt;
  for (measured_rows at; in >> text >> at.rows >> at.seconds;) {
    const double before = on.layer.empty() ? 0 : on.layer.back().rows;
    if (text != "layer" || !(at.rows > before && at.seconds > 0)) return std::nullopt;
    on.layer.push_back(at);
  }
  if (on.layer.empty()) return std::nullopt;
  return on;
}

void remember_machine(const std::string& key, const machine_description& on) {
  const auto file = file_of(key);
  if (!file) return;
  std::error_code ignored;
  fs::create_directories(file->parent_path(), ignored);
  const fs::path beside = file->string() + ".new"; // a reader sees the old file or the new one
  {
    std::ofstream out(beside);
    out.precision(std::numeric_limits<double>::max_digits10);
    out << key << "\n";
    for (const auto& [name, rate] : rates)
      out << name << " " << on.*rate << "\n";
    for (const auto& [name, share] : link_shares)
      out << name << " " << on.*share << "\n";
    for (const measured_rows& at : on.layer)
      out << "layer " << at.rows << " " << at.seconds << "\n";
    if (!out.flush()) return;
  }
  fs::rename(beside, *file, ignored);
}

} // namespace twill::models::offload
