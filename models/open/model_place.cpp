#include "models/open/model_place.hpp"

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include "models/checkpoint/gguf/split_name.hpp"
#include "models/synth/dummy.hpp"

namespace twill::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view gguf_extension = ".gguf";

bool begins_as_gguf(const std::string& path) {
  std::array<char, 4> magic{};
  std::ifstream in(path, std::ios::binary);
  in.read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) == "GGUF";
}

/// Finds the GGUF models in a folder. The result has one file of each model: the one whose name
/// sorts first.
std::map<std::string, std::string> models_in(const fs::path& folder) {
  std::map<std::string, std::string> first_of; // key: the file name without the number of its part
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    if (at->path().extension() != gguf_extension || !fs::is_regular_file(at->path(), ignored))
      continue;
    const auto part = gguf::parse_split_name(name);
    std::string& first = first_of.try_emplace(part ? part->prefix : name, name).first->second;
    if (name < first) first = name;
  }
  return first_of;
}

failure several(const std::string& path, const std::map<std::string, std::string>& models) {
  constexpr std::size_t most_shown = 5;
  std::string names;
  std::size_t shown = 0;
  for (const auto& [model, file] : models)
    if (shown++ < most_shown) names += (names.empty() ? "" : ", ") + file;
  return {errc::unsupported,
          path + ": the folder must hold one model, got " + std::to_string(models.size()) +
              " in GGUF; name one of them: " + names + (models.size() > most_shown ? ", ..." : "")};
}

} // namespace

result<model_place> find_model(const std::string& path) {
  if (synth::is_dummy(path)) return model_place{model_kind::dummy, path};
  std::error_code unreadable;
  const fs::path where(path);
  if (fs::is_directory(where, unreadable)) {
    if (fs::exists(where / "config.json", unreadable)) return model_place{model_kind::folder, path};
    const auto models = models_in(where);
    if (models.empty()) return model_place{model_kind::folder, path};
    if (models.size() > 1) return several(path, models);
    return model_place{model_kind::gguf, (where / models.begin()->second).string()};
  }
  // A path to a file stands for the folder around the file. Exceptions are a GGUF file, whatever
  // its name, and a file without a config.json beside it: such a path is opened as GGUF.
  const bool is_gguf = begins_as_gguf(path) || where.extension() == gguf_extension ||
                       !fs::exists(where.parent_path() / "config.json", unreadable);
  return model_place{is_gguf ? model_kind::gguf : model_kind::folder, path};
}

} // namespace twill::models
