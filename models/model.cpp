#include "models/model.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "models/open/openers.hpp"
#include "models/synth/dummy.hpp"

namespace twill::models {
namespace {

bool is_gguf(const std::string& path) {
  std::array<char, 4> magic{};
  std::ifstream in(path, std::ios::binary);
  in.read(magic.data(), magic.size());
  return std::memcmp(magic.data(), "GGUF", magic.size()) == 0;
}

} // namespace

result<std::shared_ptr<const model>> open_model(const std::string& path,
                                                const std::string& template_path) {
  if (synth::is_dummy(path)) return open_dummy_model(path, template_path);
  std::error_code unreadable; // the openers report what is wrong with such a path
  const std::filesystem::path where(path);
  if (std::filesystem::is_directory(where, unreadable))
    return open_folder_model(path, template_path);
  // Any other file belongs to the folder around it, unless it is a GGUF file, whatever its name.
  if (is_gguf(path) || !std::filesystem::exists(where.parent_path() / "config.json", unreadable))
    return open_gguf_model(path, template_path);
  return open_folder_model(path, template_path);
}

} // namespace twill::models
