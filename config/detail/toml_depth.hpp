// toml_depth: how deep the tables and lists of a TOML text would lie within each other, before it
// is parsed. Pure functions; any thread may call.
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
inline constexpr std::size_t most_brackets = 32;  ///< lists and inline tables within each other

struct deep_place {
  std::size_t line = 0, column = 0; ///< from 1 on; columns count bytes
  std::string problem;              ///< "a key must have at most 32 parts, got more"
};

/// The first place that is too deep. A text that has none parses to at most
/// most_key_parts * (most_brackets + 1) levels, or to an error.
std::optional<deep_place> find_deep_place(std::string_view toml);

} // namespace twill::config::detail
