#include "net/http/weight_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace twill::net {
namespace {

/// Adds a file; follows links, because the cache of the Hugging Face hub consists of links.
bool add_file(const std::string& path, weight_files& to) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  to.bytes += found.st_size;
  to.modified_unix_s = std::max<std::int64_t>(to.modified_unix_s, found.st_mtime);
  return true;
}

} // namespace

weight_files look_at_weights(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kinds = {
      {{".gguf", "gguf"}, {".safetensors", "safetensors"}, {".bin", "pytorch"}}};
  constexpr int most_entries = 10'000;
  weight_files found;
  if (add_file(path, found)) {
    for (const auto& [ending, format] : kinds)
      if (path.ends_with(ending)) found.format = format;
    return found;
  }
  // A folder may contain its weights in two formats; the first format that is found is the one that
  // is loaded.
  for (const auto& [ending, format] : kinds) {
    std::error_code failed;
    int left = most_entries;
    for (fs::directory_iterator at(path, failed), end; !failed && at != end && left > 0;
         at.increment(failed), --left) {
      const auto file = at->path().string();
      if (file.ends_with(ending) && add_file(file, found)) found.format = format;
    }
    if (found.bytes > 0) return found;
  }
  return found;
}

} // namespace twill::net
