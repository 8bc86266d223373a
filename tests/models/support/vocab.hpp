// Small committed vocabularies (tests/golden/tokenizers) as GGUF metadata.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/gguf/metadata.hpp"
#include "models/text/tokenizer.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

namespace twill::test {

inline models::gguf::metadata vocab_metadata(const std::string& name) {
  const value file = read_json_file(test::golden_dir() + "/tokenizers/" + name + ".vocab.json");
  models::gguf::metadata metadata;
  for (const auto& [key, v] : *file.as_object()) {
    auto& entry = metadata.entries["tokenizer.ggml." + key];
    if (v.as_string() != nullptr) entry = *v.as_string();
    if (v.as_int() != nullptr) entry = *v.as_int();
    if (v.as_list() == nullptr) continue;
    if (!v.as_list()->empty() && v.as_list()->front().as_string() != nullptr) {
      models::gguf::string_array strings;
      for (const value& s : *v.as_list())
        strings.push_back(text_of(s));
      entry = std::move(strings);
    } else {
      models::gguf::int_array ints;
      for (const value& i : *v.as_list())
        ints.push_back(*i.as_int());
      entry = std::move(ints);
    }
  }
  return metadata;
}

inline std::vector<models::token_id> ids_of(const value& list) {
  std::vector<models::token_id> ids;
  for (const value& id : list_of(list))
    ids.push_back(static_cast<models::token_id>(*id.as_int()));
  return ids;
}

} // namespace twill::test
