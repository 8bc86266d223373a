#include "tools/twill-bench/kernels/json_lines.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace twill::bench {

json_lines::json_lines(const std::string& path) : path_(path) {
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), "w"));
  if (file_ == nullptr)
    throw std::runtime_error("--json must name a file that can be written, got " + path + ": " +
                             std::strerror(errno));
}

void json_lines::write(const std::string& json) {
  if (file_ == nullptr) return;
  if (std::fprintf(file_.get(), "%s\n", json.c_str()) < 0 || std::fflush(file_.get()) != 0)
    throw std::runtime_error("--json: writing " + path_ + " failed: " + std::strerror(errno));
}

} // namespace twill::bench
