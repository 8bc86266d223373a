// base64: decodes RFC 4648 text. The functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::models {

/// The decoded bytes; none if `text` is not base64. Padding is optional.
std::optional<std::string> decode_base64(std::string_view text);

} // namespace twill::models
