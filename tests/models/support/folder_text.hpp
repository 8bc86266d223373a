// Tokenizers of folders under tests/golden, and the texts and ids of their golden files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/families/registry.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"
#include "tests/support/json.hpp"

namespace twill::test {

/// A folder's JSON files; null where absent.
struct folder_json {
  value config, tokenizer_config, generation_config;

  explicit folder_json(const std::string& path) {
    const auto read = [&](const char* name, value& into) {
      const std::string file = path + "/" + name;
      if (std::filesystem::exists(file)) into = read_json_file(file);
    };
    read("config.json", config);
    read("tokenizer_config.json", tokenizer_config);
    read("generation_config.json", generation_config);
  }
};

inline models::result<std::shared_ptr<const models::tokenizer>>
open_folder_text(const std::string& path, const std::string& family) {
  const folder_json files(path);
  const auto or_null = [](const value& v) { return v.is_null() ? nullptr : &v; };
  const auto* found = models::families::find(family);
  const models::tokenizer_hints hints =
      found == nullptr ? models::tokenizer_hints{} : found->tokenizer;
  return models::make_folder_tokenizer({.path = path,
                                        .hints = hints,
                                        .config = &files.config,
                                        .tokenizer_config = or_null(files.tokenizer_config),
                                        .generation_config = or_null(files.generation_config)});
}

inline std::vector<models::token_id> token_ids(const value& list) {
  std::vector<models::token_id> ids;
  for (const value& id : list_of(list))
    ids.push_back(static_cast<models::token_id>(*id.as_int()));
  return ids;
}

} // namespace twill::test
