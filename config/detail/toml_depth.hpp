// toml_depth: checks, before a TOML text is parsed, how deeply its tables and lists would be
// nested. Pure functions, which any thread may call.
//
// toml++ makes a table of each part of a dotted key and destroys nested tables recursively, so a
// key of many thousand parts would exhaust the stack.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace twill::config::detail {

inline constexpr std::size_t most_key_parts = 32; ///< of one dotted key or table header
inline constexpr std::size_t most_brackets = 32;  ///< nested lists and inline tables

struct deep_place {
  std::size_t line = 0, column = 0; ///< from 1 on; columns count bytes
  std::string problem;              ///< "a key must have at most 32 parts, got more"
};

/// The first place that is nested too deeply. A text without such a place parses to at most
/// most_key_parts * (most_brackets + 1) levels, or to an error.
std::optional<deep_place> find_deep_place(std::string_view toml);

} // namespace twill::config::detail
