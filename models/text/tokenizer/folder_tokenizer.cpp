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

/// Returns the path of the *.tiktoken file whose name sorts first; empty if there is none.
std::string find_tiktoken(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".tiktoken") found.push_back(at->path().string());
  return found.empty() ? std::string() : *std::min_element(found.begin(), found.end());
}

result<std::shared_ptr<const tokenizer>> read_first_kind(const folder_files& files) {
  const std::string& folder = files.path;
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

} // namespace

result<std::shared_ptr<const tokenizer>> make_folder_tokenizer(const folder_files& files) {
  constexpr std::int64_t max_bytes = 64 << 20;
  const std::string path = files.path + "/special_tokens_map.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return read_first_kind(files);
  const auto map = read_json_file(path, max_bytes);
  if (!map.ok()) return map.error();
  if (map.value().as_object() == nullptr)
    return failure{errc::bad_format, path + ": must be a JSON object"};
  folder_files all = files;
  all.special_tokens_map = &map.value();
  return read_first_kind(all);
}

} // namespace twill::models
