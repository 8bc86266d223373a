#include "config/detail/load_words.hpp"

#include "config/parse_toml.hpp"

namespace twill::config::detail {

std::string at(const std::string& file, const toml::source_region& where) {
  return file + ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column);
}

std::string ticked(std::string_view name) {
  std::string text = "`";
  text += name;
  return text += '`';
}

std::string unknown_member(std::string_view name, const std::vector<std::string_view>& known) {
  const auto meant = nearest(name, known);
  return "unknown key " + ticked(name) +
         (meant.empty() ? "; `twilld --print-reference` lists all keys"
                        : "; did you mean " + ticked(meant) + "?");
}

std::optional<toml::table> parse_as_v(const std::string& text) {
  try {
    auto parsed = parse_toml("v = " + text);
    if (parsed.size() == 1 && parsed.get("v") != nullptr) return parsed;
  } catch (const toml::parse_error&) {
  }
  return std::nullopt;
}

} // namespace twill::config::detail
