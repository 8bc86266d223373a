#include "tools/common/models_folder.hpp"

#include <unistd.h>

#include <cstdlib>

#include "config/base/cache_folder.hpp"

namespace twill::tools {

namespace fs = std::filesystem;

std::vector<fs::path> models_folders() {
  if (const char* named = std::getenv("TWILL_MODELS"); named != nullptr && *named != '\0')
    return {named};
  std::vector<fs::path> folders{machine_models_folder};
  if (const auto cache = cache_folder()) folders.push_back(*cache / "models");
  return folders;
}

fs::path models_folder_to_fill() {
  const auto folders = models_folders();
  for (const auto& folder : folders)
    if (folder != machine_models_folder || ::access(folder.c_str(), W_OK) == 0) return folder;
  return {};
}

} // namespace twill::tools
