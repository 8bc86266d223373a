#include "tools/twill-bench/report/charts.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/runs/child.hpp"

namespace twill::bench {
namespace {

constexpr std::array<const char*, 4> converters{"rsvg-convert", "inkscape", "magick", "convert"};

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

std::vector<std::string> command_of(const std::string& converter, const std::string& from,
                                    const std::string& to) {
  if (converter == "rsvg-convert") return {converter, "-o", to, from};
  if (converter == "inkscape") return {converter, "--export-filename=" + to, from};
  return {converter, from, to};
}

} // namespace

std::string write_charts(const std::string& folder,
                         const std::vector<std::pair<std::string, chart>>& charts) {
  for (const auto& [name, one] : charts)
    write_file(folder + "/" + name + ".svg", svg_chart(one));
  for (const char* converter : converters) {
    if (!on_path(converter)) continue;
    bool fine = true;
    for (const auto& [name, one] : charts) {
      const std::string stem = folder + "/" + name;
      child_order order;
      order.command = command_of(converter, stem + ".svg", stem + ".png");
      order.log_path = "/dev/null";
      child program(order);
      fine = program.wait_for_end(std::chrono::seconds(30)) && program.exit_status() == 0 && fine;
    }
    if (fine) return std::string("PNG written by ") + converter;
  }
  return "no PNG: none of rsvg-convert, inkscape and ImageMagick is installed and works";
}

} // namespace twill::bench
