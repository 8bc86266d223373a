// own_names: replaces OpenAI's names of fields in error messages by the names that another API
// uses. The functions are pure.
//
// The engine and the checks that all APIs share write OpenAI's names into their messages; clients
// of another API know only the names of that API.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace twill::net {

using field_names = std::span<const std::pair<std::string_view, std::string_view>>;

/// Returns `message` with every "`shared`" replaced by "`own`", for each pair {shared, own} of
/// `names`.
std::string with_own_names(std::string_view message, field_names names);

} // namespace twill::net
