#include "tools/twill-bench/report/write_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace twill::bench {

void write_file(const std::string& path, const std::string& contents) {
  namespace fs = std::filesystem;
  const fs::path target(path);
  std::error_code error;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  const std::string beside = path + ".new";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << contents;
  file.close();
  if (file.fail()) {
    fs::remove(beside, error);
    throw std::runtime_error("cannot write " + path);
  }
  fs::rename(beside, target, error);
  if (error) throw std::runtime_error("cannot write " + path + ": " + error.message());
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

} // namespace twill::bench
