// string_literal: decodes the escapes of string literals as Python does. The functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::models::jinja {

/// The decoded text; nothing when an escape is malformed or names a surrogate.
std::optional<std::string> decode_string_literal(std::string_view inside);

} // namespace twill::models::jinja
