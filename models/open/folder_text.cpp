#include "models/open/folder_text.hpp"

#include <cstdint>
#include <filesystem>

#include "models/checkpoint/json.hpp"
#include "models/families/registry.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"

namespace twill::models {

result<std::shared_ptr<const tokenizer>> open_folder_tokenizer(const std::string& path) {
  constexpr std::int64_t max_bytes = 64 << 20;
  const auto read = [&](const char* name) -> result<value> {
    const std::string file = path + "/" + name;
    return std::filesystem::exists(file) ? read_json_file(file, max_bytes) : result<value>(value());
  };
  const auto config = read("config.json"), tokens = read("tokenizer_config.json"),
             generation = read("generation_config.json");
  for (const auto* file : {&config, &tokens, &generation})
    if (!file->ok()) return file->error();
  return make_folder_tokenizer({.path = path,
                                .hints = families::tokenizer_hints_of(config.value()),
                                .config = &config.value(),
                                .tokenizer_config = &tokens.value(),
                                .generation_config = &generation.value()});
}

} // namespace twill::models
