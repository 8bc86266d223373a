#include "config/detail/toml_depth.hpp"

#include <algorithm>

namespace twill::config::detail {
namespace {

/// The end of the string that begins at `from` with a quotation mark. A string without its closing
/// mark ends with its line or with the text; toml++ parses nothing after such a string.
std::size_t end_of_string(std::string_view text, std::size_t from) {
  const char quote = text[from];
  const auto quotes_at = [&](std::size_t i) { // 5 at most: no more belong together
    std::size_t n = 0;
    while (n < 5 && i + n < text.size() && text[i + n] == quote)
      ++n;
    return n;
  };
  const bool escapes = quote == '"';
  if (quotes_at(from) == 2) return from + 2;
  const bool several_lines = quotes_at(from) > 2;
  for (auto i = from + (several_lines ? 3 : 1); i < text.size(); ++i) {
    if (escapes && text[i] == '\\') {
      ++i;
    } else if (several_lines) {
      // Up to two quotation marks may stand right before the three that end the string.
      if (const auto n = quotes_at(i); n >= 3) return i + std::min<std::size_t>(n, 5);
    } else if (text[i] == quote) {
      return i + 1;
    } else if (text[i] == '\n') {
      return i;
    }
  }
  return text.size();
}

deep_place place_of(std::string_view text, std::size_t byte, std::string problem) {
  const auto before = text.substr(0, byte);
  const auto newline = before.rfind('\n');
  return {1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')),
          newline == before.npos ? byte + 1 : byte - newline, std::move(problem)};
}

} // namespace

std::optional<deep_place> find_deep_place(std::string_view toml) {
  std::size_t parts = 1, brackets = 0;
  for (std::size_t i = 0; i < toml.size(); ++i) {
    switch (toml[i]) {
    case '"':
    case '\'':
      i = end_of_string(toml, i) - 1;
      break;
    case '#':
      i = std::min(toml.find('\n', i), toml.size());
      parts = 1;
      break;
    case '.': // of a key; the values that have a dot have one
      if (++parts > most_key_parts)
        return place_of(toml, i,
                        "a key must have at most " + std::to_string(most_key_parts) +
                            " parts, got more");
      break;
    case '[':
    case '{':
      if (++brackets > most_brackets)
        return place_of(toml, i,
                        "at most " + std::to_string(most_brackets) +
                            " lists and tables may lie within each other, got more");
      parts = 1;
      break;
    case ']':
    case '}':
      if (brackets > 0) --brackets;
      parts = 1;
      break;
    case '=':
    case ',':
    case '\n':
      parts = 1;
      break;
    default:
      break;
    }
  }
  return std::nullopt;
}

} // namespace twill::config::detail
