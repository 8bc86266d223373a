// load_words: formats positions in files, key names and table names for the error messages about a
// configuration. The functions are pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/nearest.hpp"
#include "config/detail/toml_value.hpp"

namespace twill::config::detail {

/// Receives an error: its place and its description.
using complaint_taker = std::function<void(const std::string& origin, const std::string& problem)>;

/// FILE:LINE:COLUMN
std::string at(const std::string& file, const toml::source_region& where);

/// The name between backticks.
std::string ticked(std::string_view name);

/// The error text for an unknown member of a configuration table: suggests the member that was
/// probably meant, or says where all members are listed.
std::string unknown_member(std::string_view name, const std::vector<std::string_view>& known);
template <class Rows>
std::string unknown_member(std::string_view name, const Rows& rows) {
  std::vector<std::string_view> known;
  for (const auto& k : rows)
    known.push_back(k.name);
  return unknown_member(name, known);
}

/// The TOML text "v = ..."; nothing when it is no TOML, or more than one value.
std::optional<toml::table> parse_as_v(const std::string& text);

} // namespace twill::config::detail
