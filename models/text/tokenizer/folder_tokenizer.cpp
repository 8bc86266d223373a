#include "models/text/tokenizer/folder_tokenizer.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include "models/checkpoint/json.hpp"

namespace twill::models {
namespace {

namespace fs = std::filesystem;

/// The first *.tiktoken file by name; empty when there is none.
std::string find_tiktoken(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".tiktoken") found.push_back(at->path().string());
  return found.empty() ? std::string() : *std::min_element(found.begin(), found.end());
}

} // namespace

result<std::shared_ptr<const tokenizer>>
make_folder_tokenizer(const std::string& folder, const std::string& family, const value& config,
                      const value* tokenizer_config, const value* generation_config) {
  const folder_files files{folder, family, &config, tokenizer_config, generation_config};
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder + "/" + name, ignored); };
  if (has("tokenizer.json")) return read_tokenizer_json(files);
  if (has("tokenizer.model")) return read_sentencepiece(files);
  if (const std::string path = find_tiktoken(folder); !path.empty())
    return read_tiktoken(files, path);
  if (has("vocab.json") && has("merges.txt")) return read_vocab_and_merges(files);
  return failure{errc::file_unreadable,
                 folder + ": must have tokenizer.json, tokenizer.model, a .tiktoken file, or "
                          "vocab.json with merges.txt"};
}

result<std::shared_ptr<const tokenizer>> open_folder_tokenizer(const std::string& folder) {
  constexpr std::int64_t max_bytes = 64 << 20;
  const auto read = [&](const char* name) -> result<value> {
    const std::string path = folder + "/" + name;
    return fs::exists(path) ? read_json_file(path, max_bytes) : result<value>(value());
  };
  const auto config = read("config.json"), tokens = read("tokenizer_config.json"),
             generation = read("generation_config.json");
  for (const auto* file : {&config, &tokens, &generation})
    if (!file->ok()) return file->error();
  const value* type = config.value().find("model_type");
  return make_folder_tokenizer(
      folder, type == nullptr || type->as_string() == nullptr ? std::string() : *type->as_string(),
      config.value(), &tokens.value(), &generation.value());
}

} // namespace twill::models
