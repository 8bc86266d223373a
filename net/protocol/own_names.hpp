// own_names: the names that an API has for the fields that errors speak of. Pure.
//
// Rules that all APIs share, and the engine, say OpenAI's names; a client of another API looks for
// its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace twill::net {

using field_names = std::span<const std::pair<std::string_view, std::string_view>>;

/// `message` with every "`shared`" replaced by "`own`", for the pairs {shared, own}.
std::string with_own_names(std::string_view message, field_names names);

} // namespace twill::net
