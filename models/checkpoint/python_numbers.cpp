#include "models/checkpoint/python_numbers.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>

namespace twill::models {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct word {
  std::string_view text;
  std::optional<double> number;
};
const word words[] = {{"null", {}},
                      {"NaN", std::numeric_limits<double>::quiet_NaN()},
                      {"Infinity", infinity},
                      {"-Infinity", -infinity}};

/// Returns the position after the JSON string that begins at `at`.
std::size_t end_of_string(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at)
    if (json[at] == '\\') ++at;
  return std::min(json.size(), at + 1);
}

} // namespace

std::optional<json_without_words> replace_python_numbers(std::string_view json) {
  json_without_words out;
  bool any = false;
  for (std::size_t at = 0; at < json.size();) {
    const auto* found = std::find_if(std::begin(words), std::end(words), [&](const word& w) {
      return json.substr(at).starts_with(w.text);
    });
    if (found != std::end(words)) {
      any = any || found->number.has_value();
      out.nulls.push_back(found->number);
      out.text += "null";
      at += found->text.size();
      continue;
    }
    const std::size_t end = json[at] == '"' ? end_of_string(json, at) : at + 1;
    out.text += json.substr(at, end - at);
    at = end;
  }
  if (!any) return std::nullopt;
  return out;
}

} // namespace twill::models
