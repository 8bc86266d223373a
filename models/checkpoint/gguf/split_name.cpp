#include "models/checkpoint/gguf/split_name.hpp"

#include <algorithm>
#include <cstddef>

namespace twill::models::gguf {
namespace {

constexpr std::string_view form = "-00000-of-00000.gguf";

/// Returns the number in the five digits at `at`; -1 if there are no five digits.
int number_at(std::string_view text, std::size_t at) {
  int number = 0;
  for (const char c : text.substr(at, 5)) {
    if (c < '0' || c > '9') return -1;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::string five_digits(int number) {
  std::string text = std::to_string(number);
  return std::string(5 - std::min<std::size_t>(5, text.size()), '0') + text;
}

} // namespace

std::string split_name::of_part(int other) const {
  return prefix + "-" + five_digits(other) + "-of-" + five_digits(count) + ".gguf";
}

std::optional<split_name> parse_split_name(std::string_view path) {
  if (path.size() <= form.size()) return std::nullopt;
  const std::string_view end = path.substr(path.size() - form.size());
  split_name name{std::string(path.substr(0, path.size() - form.size())), number_at(end, 1),
                  number_at(end, 10)};
  if (name.number < 1 || name.count < 1 || name.number > name.count) return std::nullopt;
  if (path != name.of_part(name.number)) return std::nullopt;
  return name;
}

} // namespace twill::models::gguf
