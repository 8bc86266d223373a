// python_numbers: the words NaN, Infinity and -Infinity, which Python writes into JSON although
// JSON has none of them. The functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twill::models {

struct json_without_words {
  std::string text; ///< has a null in the place of each word, and the same lines
  /// What each null of the text stands for, in their order: a number, or nothing for a null.
  std::vector<std::optional<double>> nulls;
};

/// Replaces the words outside strings; nothing when there are none.
std::optional<json_without_words> replace_python_numbers(std::string_view json);

} // namespace twill::models
