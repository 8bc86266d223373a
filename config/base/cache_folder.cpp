#include "config/base/cache_folder.hpp"

#include <cstdlib>

namespace twill {

std::optional<std::filesystem::path> cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / "twill";
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache" / "twill";
  return std::nullopt;
}

} // namespace twill
