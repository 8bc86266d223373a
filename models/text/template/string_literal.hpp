// Escapes of string literals, as Python decodes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::models::jinja {

/// Nothing when an escape is malformed or names a surrogate.
std::optional<std::string> decode_string_literal(std::string_view inside);

} // namespace twill::models::jinja
