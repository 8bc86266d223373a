// split_name: the names of the parts of a model in several GGUF files, "NAME-00002-of-00003.gguf".
//
// llama.cpp writes and expects names of this form. The functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::models::gguf {

struct split_name {
  std::string prefix; ///< what stands before "-00002-of-00003.gguf", the folder included
  int number = 1;     ///< from 1
  int count = 1;

  /// The name of another part of the same model.
  std::string of_part(int other) const;
};

/// The part that a path names, or nothing when it does not end as the name of a part does.
std::optional<split_name> parse_split_name(std::string_view path);

} // namespace twill::models::gguf
