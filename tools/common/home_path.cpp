#include "tools/common/home_path.hpp"

#include <cstdlib>

namespace twill::tools {

std::string expand_home(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return path;
  return home + path.substr(1);
}

} // namespace twill::tools
