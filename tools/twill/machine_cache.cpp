#include "tools/twill/machine_cache.hpp"

#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>

#include "tools/common/cache_folder.hpp"

namespace twill::tools {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using actors::machine_description;

constexpr std::array rates = {
    std::pair{"device_flops", &machine_description::device_flops},
    std::pair{"device_bytes_per_s", &machine_description::device_bytes_per_s},
    std::pair{"host_flops", &machine_description::host_flops},
    std::pair{"host_bytes_per_s", &machine_description::host_bytes_per_s},
    std::pair{"h2d_bytes_per_s", &machine_description::h2d_bytes_per_s},
    std::pair{"d2h_bytes_per_s", &machine_description::d2h_bytes_per_s},
    std::pair{"disk_read_bytes_per_s", &machine_description::disk_read_bytes_per_s},
    std::pair{"disk_write_bytes_per_s", &machine_description::disk_write_bytes_per_s},
    std::pair{"square_overhead_s", &machine_description::square_overhead_s},
};

std::optional<fs::path> file_of(const std::string& key) {
  const auto folder = cache_folder();
  if (!folder) return std::nullopt;
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%016zx.json", std::hash<std::string>{}(key));
  return *folder / "machines" / name.data();
}

std::optional<machine_description> parse(const std::string& text, const std::string& key) {
  std::error_code damaged;
  const json::value whole = json::parse(text, damaged);
  if (damaged || !whole.is_object()) return std::nullopt;
  const json::value* named = whole.get_object().if_contains("key");
  if (named == nullptr || !named->is_string() || named->get_string() != key) return std::nullopt;
  machine_description on;
  for (const auto& [name, rate] : rates) {
    const json::value* given = whole.get_object().if_contains(name);
    if (given == nullptr || !given->is_double() || !(given->get_double() > 0)) return std::nullopt;
    on.*rate = given->get_double();
  }
  return on;
}

} // namespace

std::optional<machine_description> remembered_machine(const std::string& key) {
  const auto file = file_of(key);
  if (!file) return std::nullopt;
  std::error_code failed;
  const auto written = fs::last_write_time(*file, failed);
  if (failed ||
      fs::file_time_type::clock::now() - written > std::chrono::hours(24 * machine_cache_days))
    return std::nullopt;
  std::ifstream in(*file);
  std::ostringstream text;
  text << in.rdbuf();
  return parse(text.str(), key);
}

void remember_machine(const std::string& key, const machine_description& on) {
  const auto file = file_of(key);
  if (!file) return;
  json::object whole;
  whole["key"] = key;
  for (const auto& [name, rate] : rates)
    whole[name] = on.*rate;
  std::error_code ignored;
  fs::create_directories(file->parent_path(), ignored);
  const fs::path beside = file->string() + ".new"; // a reader sees the old file or the new one
  {
    std::ofstream out(beside);
    out << json::serialize(whole) << "\n";
    if (!out.flush()) return;
  }
  fs::rename(beside, *file, ignored);
}

} // namespace twill::tools
